package config

import (
	"errors"
	"strconv"
	"strings"
)

// A Problem is one thing that is wrong with a configuration.
type Problem struct {
	File    string // or the variable, or the flag, that is wrong
	Line    int    // of the file, from 1; 0 where there is no line
	Key     string // from the top, such as models.fast.key; may be empty
	Message string
}

// String returns "file:line: key: message", leaving out what is empty.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		b.WriteByte(':')
		b.WriteString(strconv.Itoa(p.Line))
	}
	for _, s := range []string{p.Key, p.Message} {
		if s != "" && b.Len() > 0 {
			b.WriteString(": ")
		}
		b.WriteString(s)
	}
	return b.String()
}

// Problems are all that is wrong with a configuration, in the order of the file, then of the
// environment and the flags.
type Problems []Problem

// Error returns one line for each problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// ProblemsOf returns the problems in an error of [Load], nil where it has none.
func ProblemsOf(err error) Problems {
	var ps Problems
	errors.As(err, &ps)
	return ps
}
