package config

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// A Problem is one error or warning about a configuration.
type Problem struct {
	File    string // or the variable, or the flag, that is wrong
	Line    int    // of the file, from 1; 0 where there is no line
	Key     string // from the top, such as models.fast.key; may be empty
	Message string
}

// String returns "file:line: key: message", without the parts that are empty.
func (p Problem) String() string {
	place := p.File
	if p.Line > 0 {
		place += ":" + strconv.Itoa(p.Line)
	}
	parts := []string{place, p.Key, p.Message}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ": ")
}

// Problems are all errors of a configuration: those of the file in its order, then those of the environment and of the flags.
type Problems []Problem

// Error returns one line for each problem.
func (ps Problems) Error() string {
	var lines []string
	for _, p := range ps {
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n")
}

// ProblemsOf returns the problems that an error of [Load] wraps, or nil.
func ProblemsOf(err error) Problems {
	var ps Problems
	errors.As(err, &ps)
	return ps
}
