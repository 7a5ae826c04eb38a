package secret

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Limits of a Finder.
const (
	// MinFound is the least length, in bytes, of a known value that is searched for: shorter values would match by chance.
	MinFound = 8
	// maxHead is the length of the prefix of a value that the automaton searches for. The bytes behind the prefix are compared one by one.
	maxHead = 64
)

// Found is the name that a Finder reports for text that looks like a key but is not a known value. No known value may have this name.
const Found = "found"

// A Finder finds known secrets in text: as they are, in base64, in hexadecimal (also with blanks or colons), and with the escapes of URLs,
// JSON or HTML. With patterns (see [NewFinder]), it also finds text that looks like a key of a known kind. It reads each byte once for all
// known values together (Aho-Corasick automaton). Its methods may be called from several goroutines at once.
type Finder struct {
	patterns bool
	needles  []needle

	// The automaton. State 0 is its start. Bytes that occur in no head share class 0, so that next is small.
	class   [256]uint16 // by byte, the class of the byte
	classes int         // number of classes
	next    []int32     // by state × classes + class, the next state
	ends    []int32     // by state, 1 + the index of the longest needle whose head ends in this state; 0 if no head ends in it
}

// A needle is one spelling of a known value.
type needle struct {
	name string
	full []byte
	head int // length of the prefix that the automaton searches for
}

// NewFinder returns a Finder of the known values, by name. If patterns is true, the Finder also finds text that looks like a key. Values
// shorter than [MinFound] are ignored. If two names have the same value, the name that sorts first is reported. NewFinder returns nil if no
// value remains and patterns is false; the methods must not be called on a nil Finder.
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

// forms returns the spellings of a value that a Finder searches for.
func forms(v string) []string {
	if len(v) < MinFound {
		return nil
	}
	out := []string{v, url.QueryEscape(v), url.PathEscape(v), fmt.Sprintf("%x", v), fmt.Sprintf("%X", v)}
	out = append(out, escapes(v)...)
	// The value may begin at any of three positions within a base64 group. The characters that also encode neighbouring bytes are left out.
	for shift, skip := range []int{0, 2, 3} {
		padded := append(make([]byte, shift), v...)
		std := base64.RawStdEncoding.EncodeToString(padded)[skip : len(padded)*8/6]
		out = append(out, std, strings.NewReplacer("+", "-", "/", "_").Replace(std))
	}
	return out
}

// escapes returns v with every byte, and v with every byte except letters and digits, in each of several escapes: those of URLs, JSON and
// HTML, and hexadecimal with a blank or a colon between the bytes.
func escapes(v string) []string {
	var out []string
	for _, form := range []string{"%%%02X", "%%%02x", `\u%04x`, "&#%d;", "&#x%x;", "%02x ", "%02X ", "%02x:", "%02X:"} {
		var whole, rest strings.Builder
		for _, c := range []byte(v) {
			fmt.Fprintf(&whole, form, c)
			if strings.IndexByte(alphanumeric, c) >= 0 {
				rest.WriteByte(c)
			} else {
				fmt.Fprintf(&rest, form, c)
			}
		}
		out = append(out, strings.TrimRight(whole.String(), " :"))
		// A mix of plain characters and hexadecimal without a prefix is not searched for.
		if form[0] != '%' || form[1] == '%' {
			out = append(out, rest.String())
		}
	}
	return out
}

// build builds the automaton: first the tree of all heads, then the transitions for bytes with which no head continues.
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
	f.addState()
	for i, n := range f.needles {
		state := int32(0)
		for _, c := range n.full[:n.head] {
			at := f.at(state, int(f.class[c]))
			if f.next[at] == 0 {
				to := f.addState() // before the assignment, since it replaces next
				f.next[at] = to
			}
			state = f.next[at]
		}
		if e := f.ends[state]; e == 0 || len(f.needles[e-1].full) < len(n.full) {
			f.ends[state] = int32(i + 1)
		}
	}
	f.linkBack()
}

// addState appends a state without transitions.
func (f *Finder) addState() int32 {
	f.next = append(f.next, make([]int32, f.classes)...)
	f.ends = append(f.ends, 0)
	return int32(len(f.ends) - 1)
}

// at returns the index in next of the transition of a state for a class.
func (f *Finder) at(state int32, class int) int { return int(state)*f.classes + class }

// linkBack sets, level by level of the tree, the transitions of each state for the bytes with which no head continues. They are those of the
// state for the longest proper suffix that begins a head.
func (f *Finder) linkBack() {
	suffix := make([]int32, len(f.ends)) // by state, the state of that suffix
	queue := []int32{}
	for _, state := range f.next[:f.classes] {
		if state != 0 {
			queue = append(queue, state)
		}
	}
	for len(queue) > 0 {
		state := queue[0]
		queue = queue[1:]
		if f.ends[state] == 0 {
			f.ends[state] = f.ends[suffix[state]]
		}
		for class := range f.classes {
			at, back := f.at(state, class), f.next[f.at(suffix[state], class)]
			if to := f.next[at]; to != 0 {
				suffix[to] = back
				queue = append(queue, to)
			} else {
				f.next[at] = back
			}
		}
	}
}

// known returns the position and the name of the first known value in text. start is -1 if none exists.
func (f *Finder) known(text []byte) (start, end int, name string) {
	if len(f.needles) == 0 {
		return -1, 0, ""
	}
	state := int32(0)
	for i, c := range text {
		class := f.class[c]
		if class == 0 {
			state = 0
			continue
		}
		state = f.next[f.at(state, int(class))]
		if e := f.ends[state]; e != 0 {
			n := &f.needles[e-1]
			end = i + 1
			return end - n.head, end + commonPrefix(text[end:], n.full[n.head:]), n.name
		}
	}
	return -1, 0, ""
}

// commonPrefix returns the length of the longest common prefix of a and b.
func commonPrefix(a, b []byte) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// Has reports whether text contains a secret: a known value or, with patterns (see [NewFinder]), text that looks like a key.
func (f *Finder) Has(text []byte) bool {
	start, _, _ := f.known(text)
	if start < 0 && f.patterns {
		start, _ = keyIn(text)
	}
	return start >= 0
}

// Append appends text to dst and returns the extended slice. In place of each secret in text, in order, it calls replace, which must append
// a replacement. name is the name of the known value, or [Found] for text that only looks like a key; found is the part of text that is the
// secret. Where a known value and a key overlap, the known value is replaced.
func (f *Finder) Append(dst, text []byte, replace func(dst []byte, name string, found []byte) []byte) []byte {
	for {
		start, end, name := f.known(text)
		if start < 0 {
			return f.appendKeys(dst, text, replace)
		}
		dst = replace(f.appendKeys(dst, text[:start], replace), name, text[start:end])
		text = text[end:]
	}
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

// keyIn returns the position of the first word that looks like a key. start is -1 if none exists.
func keyIn(text []byte) (start, end int) {
	afterScheme := false // the previous word is "Bearer"
	for start, end := nextWord(text, 0); start < end; start, end = nextWord(text, end) {
		word := text[start:end]
		if len(word) >= minFoundKey && (afterScheme || hasKeyPrefix(string(word[:16]))) { // no prefix is longer
			return start, end
		}
		afterScheme = bytes.EqualFold(word, []byte("bearer"))
	}
	return -1, 0
}

// minFoundKey is the least length, in bytes, of a word that a Finder takes for a key.
const minFoundKey = 20
