package server

import (
	"net/http"
	"strconv"
	"strings"
)

// maxListed is the maximum number of names in each list of members that the client gets.
const maxListed = 32

// passedNames returns the names of the members that were passed on, at most maxListed.
func (ms *members) passedNames() []string {
	var names []string
	for _, m := range ms.passed[:min(len(ms.passed), maxListed)] {
		names = append(names, m.Name)
	}
	return names
}

// Header implements [stream.Encoder]. It sets the headers about the run and about ignored, passed and dropped members.
func (a *chat) Header(h http.Header) {
	h.Set("X-Lathe-Run-Id", a.caller.runID)
	list := func(name string, members []string) {
		for _, m := range members[:min(len(members), maxListed)] {
			if isPath(m) {
				h.Add(name, m)
			}
		}
	}
	if a.lost > 0 {
		h.Set("X-Lathe-Lost-Joins", strconv.Itoa(a.lost))
	}
	list("X-Lathe-Passed", a.passedNames())
	list("X-Lathe-Ignored", a.ignored)
	list("X-Lathe-Dropped", a.dropped)
}

// isPath reports whether the path of a member has only characters that are safe in a header: names, and indexes in
// brackets.
func isPath(s string) bool { return isToken(strings.NewReplacer("[", ".", "]", ".").Replace(s)) }

// tokenCharacters are the characters of names that are safe in a header.
const tokenCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."

// isToken reports whether a name has 1 to 64 characters that are safe in a header.
func isToken(s string) bool { return s != "" && len(s) <= 64 && strings.Trim(s, tokenCharacters) == "" }
