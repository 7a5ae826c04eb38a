package gbnf

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// An automaton reads text one character at a time and tracks which mark may have begun: its states are the proper beginnings of marks. For
// the mark "ab" they are "" and "a". Each state becomes a rule of the grammar:
//
//	text0 ::= "" | [^a] text0 | "a" text1
//	text1 ::= "" | [^ab] text0 | "a" text1
type automaton struct {
	states []string       // proper beginnings of marks; the first is ""
	places map[string]int // index in states of each state
	marks  []string
}

func newAutomaton(marks []string) *automaton {
	a := &automaton{states: []string{""}, places: map[string]int{"": 0}, marks: marks}
	for _, m := range marks {
		for i := range m {
			if _, known := a.places[m[:i]]; !known {
				a.places[m[:i]] = len(a.states)
				a.states = append(a.states, m[:i])
			}
		}
	}
	return a
}

// next returns the state after text: the longest end of text that is a state. ok is false if text ends with a mark.
func (a *automaton) next(text string) (state int, ok bool) {
	for _, m := range a.marks {
		if strings.HasSuffix(text, m) {
			return 0, false
		}
	}
	for {
		if i, known := a.places[text]; known {
			return i, true
		}
		_, size := utf8.DecodeRuneInString(text)
		text = text[size:]
	}
}

// heads returns the characters that may continue or begin a mark in this state.
func (a *automaton) heads(state string) []rune {
	var out []rune
	for _, m := range a.marks {
		for i := range len(state) + 1 { // each end of the state that may begin a mark, including ""
			rest, ok := strings.CutPrefix(m, state[i:])
			if r, _ := utf8.DecodeRuneInString(rest); ok && !slices.Contains(out, r) {
				out = append(out, r)
			}
		}
	}
	return out
}

// continuing returns the characters that continue a mark which begins with the whole state.
func (a *automaton) continuing(state string) (heads []rune) {
	for _, m := range a.marks {
		rest, ok := strings.CutPrefix(m, state)
		head, _ := utf8.DecodeRuneInString(rest)
		if ok && !slices.Contains(heads, head) {
			heads = append(heads, head)
		}
	}
	return heads
}

// TextWithout returns the expression that matches any text, including the empty one, that contains none of the marks, and no NUL.
func (b *Builder) TextWithout(marks []string) string {
	key := "text\x00" + strings.Join(marks, "\x00")
	if name, ok := b.known[key]; ok {
		return name
	}
	a := newAutomaton(marks)
	names := make([]string, len(a.states))
	for i := range names {
		names[i] = b.reserve("text")
	}
	for i, state := range a.states {
		heads := a.heads(state)
		alternatives := []string{Empty, Except(string(heads)) + " " + names[0]}
		for _, r := range heads {
			if to, ok := a.next(state + string(r)); ok {
				alternatives = append(alternatives, Literal(string(r))+" "+names[to])
			}
		}
		b.define(names[i], strings.Join(alternatives, " | "))
	}
	b.keep(key, names[0])
	return names[0]
}

// Lines returns the expression that matches any text in which no line begins with one of the marks. If ended is set, the text is empty or
// ends with a line end, so that the text after it begins a line. Its rules for the mark "ab" are, if ended is not set,
//
//	line0 ::= "" | [^\n] line0 | "\n" line1                     within a line that does not begin with a mark
//	line1 ::= "" | "a" line2 | [^\na] line0 | "\n" line1         at the beginning of a line
//	line2 ::= "" | [^\nb] line0 | "\n" line1                    after "a" at the beginning of a line
//
// If ended is set, only line1 has the alternative "".
func (b *Builder) Lines(marks []string, ended bool) string {
	key := "lines\x00" + strings.Join(marks, "\x00")
	if ended {
		key += "\x00\x00"
	}
	if name, ok := b.known[key]; ok {
		return name
	}
	a := newAutomaton(marks)
	within := b.reserve("line")            // line0
	names := make([]string, len(a.states)) // line1, line2 and so on: the rule for each proper beginning of a mark, from the beginning of a line
	for i := range names {
		names[i] = b.reserve("line")
	}
	var end []string // the alternative of all rules that ends the text
	if !ended {
		end = []string{Empty}
	}
	newline := `"\n" ` + names[0]
	b.define(within, strings.Join(append(slices.Clone(end), Except("\n")+" "+within, newline), " | "))
	for i, state := range a.states {
		alternatives := slices.Clone(end)
		if i == 0 && ended {
			alternatives = append(alternatives, Empty)
		}
		heads := a.continuing(state)
		for _, head := range heads { // no alternative for one that completes a mark
			next := state + string(head)
			to, known := a.places[next]
			if known && !slices.Contains(marks, next) {
				alternatives = append(alternatives, Literal(string(head))+" "+names[to])
			}
		}
		alternatives = append(alternatives, Except("\n"+string(heads))+" "+within)
		if !slices.Contains(heads, '\n') { // otherwise a line end continues a mark
			alternatives = append(alternatives, newline)
		}
		b.define(names[i], strings.Join(alternatives, " | "))
	}
	b.keep(key, names[0])
	return names[0]
}

func (b *Builder) keep(key, name string) {
	if b.known == nil {
		b.known = map[string]string{}
	}
	b.known[key] = name
}
