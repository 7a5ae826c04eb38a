package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
)

// A value reads and writes one setting as text: the scalar of the file, of a variable, of a flag.
type value interface {
	set(text string) error // error texts do not quote what could be a secret
	text() string          // what set would read back
	kind() string          // for the reference
}

const (
	maxCount = 1_000_000
	maxSize  = 1 << 30
)

// fn is a value made of functions.
type fn struct {
	setFn  func(string) error
	textFn func() string
	what   string
	str    bool // written as a YAML string
}

func (f *fn) set(s string) error { return f.setFn(s) }
func (f *fn) text() string       { return f.textFn() }
func (f *fn) kind() string       { return f.what }

func text(p *string) value {
	return &fn{str: true, what: "text", textFn: func() string { return *p }, setFn: func(s string) error {
		*p = s
		return nil
	}}
}

// word is text without blanks.
func word(p *string) value {
	v := text(p).(*fn)
	v.setFn = func(s string) error {
		if strings.ContainsAny(s, " \t\r\n") {
			return fmt.Errorf("%s is more than one word", quote(s))
		}
		*p = s
		return nil
	}
	return v
}

// label is a word that may stand in metrics.
func label(p *string) value {
	v := text(p).(*fn)
	v.setFn = func(s string) error {
		if s != "" && !isLabel(s) {
			return fmt.Errorf("%s is not a label: lower-case letters, digits, _ . and -, at most 64", quote(s))
		}
		*p = s
		return nil
	}
	return v
}

// words is one of a few words. Each is "word" or "word=other,words": the others are what people
// write instead, and are refused with the right one.
func words[T ~string](p *T, options ...string) value {
	v := vocabulary{}
	for _, o := range options {
		w, others, _ := strings.Cut(o, "=")
		v.words = append(v.words, w)
		for _, other := range strings.FieldsFunc(others, func(r rune) bool { return r == ',' }) {
			v.others = append(v.others, [2]string{other, w})
		}
	}
	return &fn{str: true, what: v.String(), textFn: func() string { return string(*p) }, setFn: func(s string) error {
		if err := v.check(s); err != nil {
			return err
		}
		*p = T(s)
		return nil
	}}
}

func boolean(p *bool) value {
	v := vocabulary{words: []string{"true", "false"}, others: [][2]string{{"yes", "true"}, {"on", "true"}, {"1", "true"}, {"no", "false"}, {"off", "false"}, {"0", "false"}}}
	return &fn{what: "`true`, `false`", textFn: func() string { return strconv.FormatBool(*p) }, setFn: func(s string) error {
		if err := v.check(s); err != nil {
			return err
		}
		*p = s == "true"
		return nil
	}}
}

// not is a boolean that is kept as its negation.
func not(p *bool) value {
	yes := !*p
	b := boolean(&yes)
	return &fn{what: b.kind(), textFn: func() string { return strconv.FormatBool(!*p) }, setFn: func(s string) error {
		if err := b.set(s); err != nil {
			return err
		}
		*p = !yes
		return nil
	}}
}

func unsetOrBool(p **bool) value {
	v := vocabulary{words: []string{"unset", "true", "false"}, others: [][2]string{{"auto", "unset"}, {"none", "unset"}, {"yes", "true"}, {"on", "true"}, {"no", "false"}, {"off", "false"}}}
	textFn := func() string {
		if *p == nil {
			return "unset"
		}
		return strconv.FormatBool(**p)
	}
	return &fn{what: v.String(), textFn: textFn, setFn: func(s string) error {
		if err := v.check(s); err != nil {
			return err
		}
		if *p = nil; s != "unset" {
			b := s == "true"
			*p = &b
		}
		return nil
	}}
}

func count(p *int, lowest, highest int) value {
	return &fn{what: "number", textFn: func() string { return strconv.Itoa(*p) }, setFn: func(s string) error {
		n, err := number(s, int64(lowest), int64(highest))
		if err == nil {
			*p = int(n)
		}
		return err
	}}
}

// depth is a count whose 0 is kept as a negative number, as [lathe.Limits] wants it.
func depth(p *int) value {
	return &fn{what: "number", textFn: func() string { return strconv.Itoa(max(*p, 0)) }, setFn: func(s string) error {
		n, err := number(s, 0, 100)
		if err != nil {
			return err
		}
		if *p = int(n); n == 0 {
			*p = -1
		}
		return nil
	}}
}

func number(s string, lowest, highest int64) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is not a whole number", quote(s))
	}
	if n < lowest || n > highest {
		return 0, fmt.Errorf("%d is not from %d to %d", n, lowest, highest)
	}
	return n, nil
}

// tokens is a number or "none"; none is kept as the largest number.
func tokens(p *int64) value {
	textFn := func() string {
		if *p == math.MaxInt64 {
			return "none"
		}
		return strconv.FormatInt(*p, 10)
	}
	return &fn{what: "number, `none`", textFn: textFn, setFn: func(s string) error {
		if s == "none" {
			*p = math.MaxInt64
			return nil
		}
		n, err := number(s, 1, math.MaxInt64-1)
		if err == nil {
			*p = n
		}
		return err
	}}
}

// dollars is an amount above 0 or "none", which is kept as 0.
func dollars(p *float64) value {
	textFn := func() string {
		if *p == 0 {
			return "none"
		}
		return strconv.FormatFloat(*p, 'f', -1, 64)
	}
	return &fn{what: "amount, `none`", textFn: textFn, setFn: func(s string) error {
		if s == "none" {
			*p = 0
			return nil
		}
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || !(f > 0) || math.IsInf(f, 0) {
			return fmt.Errorf("%s is not an amount above 0", quote(s))
		}
		*p = f
		return nil
	}}
}

var sizeUnits = []struct {
	name string
	n    int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

func size(p *int, lowest, highest int64) value {
	return &fn{what: "size", textFn: func() string { return formatSize(int64(*p)) }, setFn: func(s string) error {
		n, err := parseSize(s)
		if err != nil {
			return err
		}
		if n < lowest || n > highest {
			return fmt.Errorf("%s is not from %s to %s", quote(s), formatSize(lowest), formatSize(highest))
		}
		*p = int(n)
		return nil
	}}
}

// sizeOrNone is a size above 0 or "none", which is kept as 0.
func sizeOrNone(p *int64) value {
	textFn := func() string {
		if *p == 0 {
			return "none"
		}
		return formatSize(*p)
	}
	return &fn{what: "size, `none`", textFn: textFn, setFn: func(s string) error {
		if s == "none" {
			*p = 0
			return nil
		}
		n, err := parseSize(s)
		if err == nil && n < 1 {
			err = fmt.Errorf("%s is not a size above 0", quote(s))
		}
		if err == nil {
			*p = n
		}
		return err
	}}
}

func parseSize(s string) (int64, error) {
	digits, unit := s, int64(1)
	for _, u := range sizeUnits {
		if d, ok := strings.CutSuffix(s, u.name); ok {
			digits, unit = strings.TrimRight(d, " "), u.n
			break
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n > math.MaxInt64/unit || n < 0 {
		return 0, fmt.Errorf("%s is not a size: write 65536 or 64KiB (B, KiB, MiB, GiB)", quote(s))
	}
	return n * unit, nil
}

func formatSize(n int64) string {
	for _, u := range sizeUnits {
		if u.n > 1 && n != 0 && n%u.n == 0 {
			return strconv.FormatInt(n/u.n, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

func duration(p *time.Duration, lowest time.Duration) value {
	return &fn{what: "duration", textFn: func() string { return formatDuration(*p) }, setFn: func(s string) error {
		d, err := parseDuration(s)
		if err != nil {
			return err
		}
		if d < lowest {
			return fmt.Errorf("%s is too short", quote(s))
		}
		*p = d
		return nil
	}}
}

// durationUpTo is a duration from 0 to most.
func durationUpTo(p *time.Duration, most time.Duration) value {
	v := duration(p, 0).(*fn)
	set := v.setFn
	v.setFn = func(s string) error {
		before := *p
		if err := set(s); err != nil {
			return err
		}
		if *p > most {
			*p = before
			return fmt.Errorf("%s is too long: %s at most", quote(s), formatDuration(most))
		}
		return nil
	}
	return v
}

// durationOr is a duration above 0, or a word that turns the bound off; off is kept as a negative number.
func durationOr(p *time.Duration, off string) value {
	textFn := func() string {
		if *p < 0 {
			return off
		}
		return formatDuration(*p)
	}
	return &fn{what: "duration, `" + off + "`", textFn: textFn, setFn: func(s string) error {
		if s == off {
			*p = -1
			return nil
		}
		d, err := parseDuration(s)
		if err != nil {
			return err
		}
		if d <= 0 {
			return fmt.Errorf("%s is too short; %s turns it off", quote(s), off)
		}
		*p = d
		return nil
	}}
}

func parseDuration(s string) (time.Duration, error) {
	if n, err := strconv.ParseFloat(s, 64); err == nil && n != 0 {
		return 0, fmt.Errorf("%s has no unit: write %ss", quote(s), s)
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("%s is not a duration: write 300ms, 30s, 15m or 1h30m", quote(s))
	}
	return d, nil
}

// formatDuration leaves out the zero parts that time.Duration writes: 15m0s is 15m.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// choice reads a tool choice. "auto" is kept as the zero value: it is what servers do when nothing is said.
func choice(p *lathe.ToolChoice) value {
	v := vocabulary{words: []string{lathe.ChoiceAuto, lathe.ChoiceNone, lathe.ChoiceRequired, "function:NAME"},
		others: [][2]string{{"any", "required"}, {"must", "required"}, {"off", "none"}}}
	textFn := func() string {
		switch p.Mode {
		case "":
			return lathe.ChoiceAuto
		case lathe.ChoiceFunction:
			return "function:" + p.Name
		default:
			return p.Mode
		}
	}
	return &fn{str: true, what: v.String(), textFn: textFn, setFn: func(s string) error {
		if name, ok := strings.CutPrefix(s, "function:"); ok {
			if err := isToolName(name); err != nil {
				return err
			}
			*p = lathe.ToolChoice{Mode: lathe.ChoiceFunction, Name: name}
			return nil
		}
		if err := v.check(s); err != nil {
			return err
		}
		if *p = (lathe.ToolChoice{Mode: s}); s == lathe.ChoiceAuto {
			*p = lathe.ToolChoice{}
		}
		return nil
	}}
}

func decision(p *lathe.Decision) value {
	v := vocabulary{words: []string{"allow", "ask", "deny"}, others: [][2]string{
		{"allowed", "allow"}, {"yes", "allow"}, {"true", "allow"}, {"approve", "ask"}, {"confirm", "ask"}, {"denied", "deny"}, {"no", "deny"}, {"false", "deny"}, {"block", "deny"}}}
	return &fn{str: true, what: v.String(), textFn: func() string { return p.String() }, setFn: func(s string) error {
		if err := v.check(s); err != nil {
			return err
		}
		*p = map[string]lathe.Decision{"allow": lathe.Allow, "ask": lathe.Ask, "deny": lathe.Deny}[s]
		return nil
	}}
}

func isToolName(s string) error {
	ok := s != "" && len(s) <= 64
	for i := range len(s) {
		c := s[i]
		ok = ok && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-')
	}
	if !ok {
		return errors.New("a tool name has 1 to 64 letters, digits, _ and -")
	}
	return nil
}

// isName refuses what cannot be one word of a list.
func isName(s string) error {
	if s == "" || len(s) > 128 || strings.ContainsAny(s, " \t\r\n,") {
		return fmt.Errorf("%s is not a name", quote(s))
	}
	return nil
}

func isLabel(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' && c != '.' {
			return false
		}
	}
	return s != "" && len(s) <= 64
}
