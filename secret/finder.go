package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Limits of a Finder.
const (
	// MinFound is the length from which a known value is looked for: shorter ones would be found by chance.
	MinFound = 8
	// maxHead is the part of a value that is searched for. What follows it is compared.
	maxHead = 64
)

// Found is the name that a Finder reports for text that looks like a key and is not a known value.
const Found = "found"

// A Finder finds known secrets in text, as they are and as base64, hex (also with blanks or colons), or escapes of URLs, JSON or HTML of them, and
// on demand what looks like a key of a known kind. It looks at each byte once for all known values
// together (the automaton of Aho and Corasick), and may be used by several goroutines at once.
type Finder struct {
	patterns bool
	needles  []needle
	class    [256]uint16 // of a byte; 0 for those in no head
	classes  int
	next     []int32 // by state and class
	ends     []int32 // by state: the longest needle whose head ends here, plus 1
}

type needle struct {
	name string
	full []byte
	head int
}

// NewFinder returns a Finder of the values by their names, nil if there is nothing to find.
// Values shorter than [MinFound] are not looked for.
func NewFinder(known map[string]Secret, patterns bool) *Finder {
	f := &Finder{patterns: patterns}
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		for _, form := range forms(known[name].Reveal()) {
			if len(form) >= MinFound && !seen[form] {
				seen[form] = true
				f.needles = append(f.needles, needle{name, []byte(form), min(len(form), maxHead)})
			}
		}
	}
	if len(f.needles) == 0 && !patterns {
		return nil
	}
	f.build()
	return f
}

// forms returns the ways in which a value is written.
func forms(v string) []string {
	if len(v) < MinFound {
		return nil
	}
	out := []string{v, url.QueryEscape(v), url.PathEscape(v), hex.EncodeToString([]byte(v)), strings.ToUpper(hex.EncodeToString([]byte(v)))}
	out = append(out, escapes(v)...)
	for shift, skip := range []int{0, 2, 3} { // wherever it begins in a longer text; what its neighbours share in is left out
		padded := append(make([]byte, shift), v...)
		std := base64.RawStdEncoding.EncodeToString(padded)[skip : len(padded)*8/6]
		out = append(out, std, strings.NewReplacer("+", "-", "/", "_").Replace(std))
	}
	return out
}

// escapes returns v with every byte, or every one but letters and digits, written as one kind of
// escape: URLs, JSON, HTML, and hex with something between the bytes.
func escapes(v string) []string {
	var out []string
	for _, form := range []string{"%%%02X", "%%%02x", `\u%04x`, "&#%d;", "&#x%x;", "%02x ", "%02X ", "%02x:", "%02X:"} {
		var whole, rest strings.Builder
		for i := range len(v) {
			c := v[i]
			fmt.Fprintf(&whole, form, c)
			if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
				rest.WriteByte(c)
			} else {
				fmt.Fprintf(&rest, form, c)
			}
		}
		out = append(out, strings.TrimRight(whole.String(), " :"))
		if form[0] != '%' || form[1] == '%' { // not hex alone, which is read byte by byte
			out = append(out, rest.String())
		}
	}
	return out
}

func (f *Finder) build() {
	f.classes = 1
	for _, n := range f.needles {
		for _, c := range n.full[:n.head] {
			if f.class[c] == 0 {
				f.class[c] = uint16(f.classes)
				f.classes++
			}
		}
	}
	grow := func() int32 {
		f.next = append(f.next, make([]int32, f.classes)...)
		f.ends = append(f.ends, 0)
		return int32(len(f.ends) - 1)
	}
	grow()
	for i, n := range f.needles {
		s := int32(0)
		for _, c := range n.full[:n.head] {
			at := int(s)*f.classes + int(f.class[c])
			if f.next[at] == 0 {
				to := grow()
				f.next[at] = to
			}
			s = f.next[at]
		}
		if e := f.ends[s]; e == 0 || len(f.needles[e-1].full) < len(n.full) {
			f.ends[s] = int32(i + 1)
		}
	}
	fail := make([]int32, len(f.ends))
	queue := []int32{}
	for c := range f.classes {
		if s := f.next[c]; s != 0 {
			queue = append(queue, s)
		}
	}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		if f.ends[s] == 0 {
			f.ends[s] = f.ends[fail[s]]
		}
		for c := range f.classes {
			at, back := int(s)*f.classes+c, f.next[int(fail[s])*f.classes+c]
			if to := f.next[at]; to != 0 {
				fail[to] = back
				queue = append(queue, to)
			} else {
				f.next[at] = back
			}
		}
	}
}

// known returns the first known value in text.
func (f *Finder) known(text []byte) (start, end int, name string) {
	if len(f.needles) == 0 {
		return -1, 0, ""
	}
	s := int32(0)
	for i, c := range text {
		class := f.class[c]
		if class == 0 {
			s = 0
			continue
		}
		if s = f.next[int(s)*f.classes+int(class)]; s == 0 {
			continue
		}
		e := f.ends[s]
		if e == 0 {
			continue
		}
		n := &f.needles[e-1]
		start, end = i+1-n.head, i+1
		for rest := n.full[n.head:]; len(rest) > 0 && end < len(text) && text[end] == rest[0]; rest = rest[1:] {
			end++
		}
		return start, end, n.name
	}
	return -1, 0, ""
}

// Has reports whether text holds anything to take out.
func (f *Finder) Has(text []byte) bool {
	if start, _, _ := f.known(text); start >= 0 {
		return true
	}
	if !f.patterns {
		return false
	}
	start, _ := keyIn(text)
	return start >= 0
}

// Append appends text with what replace appends in the place of each secret, by its name.
func (f *Finder) Append(dst, text []byte, replace func(dst []byte, name string, found []byte) []byte) []byte {
	for len(text) > 0 {
		start, end, name := f.known(text)
		before := text
		if start >= 0 {
			before = text[:start]
		}
		dst = f.appendKeys(dst, before, replace)
		if start < 0 {
			return dst
		}
		dst = replace(dst, name, text[start:end])
		text = text[end:]
	}
	return dst
}

func (f *Finder) appendKeys(dst, text []byte, replace func(dst []byte, name string, found []byte) []byte) []byte {
	for f.patterns {
		start, end := keyIn(text)
		if start < 0 {
			break
		}
		dst = replace(append(dst, text[:start]...), Found, text[start:end])
		text = text[end:]
	}
	return append(dst, text...)
}

// keyIn finds the first word that looks like a key.
func keyIn(text []byte) (start, end int) {
	scheme := false
	for i := 0; i < len(text); {
		if !isTokenByte(text[i]) {
			i++
			continue
		}
		start := i
		for i < len(text) && isTokenByte(text[i]) {
			i++
		}
		word := text[start:i]
		if len(word) >= minFoundKey && (scheme || hasKeyPrefix(string(word[:min(len(word), 16)]))) {
			return start, i
		}
		scheme = bytes.EqualFold(word, []byte("bearer"))
	}
	return -1, 0
}

// minFoundKey is the length of a word from which it may be a key in text that is no error message.
const minFoundKey = 20
