package gbnf

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// An automaton reads text one character at a time and tracks which mark may have begun: its states are the proper beginnings of marks.
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

// next returns the state after text: the longest end of text that begins a mark. ok is false if text ends with a mark.
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
	add := func(r rune) {
		if !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	for _, m := range a.marks {
		for i := 0; i <= len(state); i++ { // each end of the state that may begin a mark, including ""
			if rest, ok := strings.CutPrefix(m, state[i:]); ok {
				r, _ := utf8.DecodeRuneInString(rest)
				add(r)
			}
		}
	}
	return out
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
// ends with a line end, so that the text after it begins a line.
func (b *Builder) Lines(marks []string, ended bool) string {
	key := "lines\x00" + strings.Join(marks, "\x00")
	if ended {
		key += "\x00\x00"
	}
	if name, ok := b.known[key]; ok {
		return name
	}
	a := newAutomaton(marks)
	within := b.reserve("line")
	names := make([]string, len(a.states))
	for i := range names {
		names[i] = b.reserve("line")
	}
	end := []string{Empty}
	if ended {
		end = nil
	}
	newline := `"\n" ` + names[0]
	b.define(within, strings.Join(append(slices.Clone(end), Except("\n")+" "+within, newline), " | "))
	for i, state := range a.states {
		alternatives := slices.Clone(end)
		if i == 0 && ended {
			alternatives = append(alternatives, Empty)
		}
		var heads []rune
		for _, m := range marks {
			if rest, ok := strings.CutPrefix(m, state); ok {
				r, _ := utf8.DecodeRuneInString(rest)
				if slices.Contains(heads, r) {
					continue
				}
				heads = append(heads, r)
				if to, known := a.places[state+string(r)]; known && !slices.Contains(marks, state+string(r)) {
					alternatives = append(alternatives, Literal(string(r))+" "+names[to])
				}
			}
		}
		alternatives = append(alternatives, Except("\n"+string(heads))+" "+within)
		if !slices.Contains(heads, '\n') {
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
