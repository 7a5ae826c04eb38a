package text

import (
	"strconv"
	"strings"
)

// CutIndex splits a path that begins with an element of the list into the index of that element and the rest: for the path
// "messages[2].parts" and the list "messages" it returns 2 and ".parts". If the path begins with something else, ok is false and rest is
// path.
func CutIndex(path, list string) (n int, rest string, ok bool) {
	inner, ok := strings.CutPrefix(path, list+"[")
	digits, rest, closed := strings.Cut(inner, "]")
	n, err := strconv.Atoi(digits)
	if !ok || !closed || err != nil || n < 0 {
		return 0, path, false
	}
	return n, rest, true
}
