package text

import (
	"strconv"
	"strings"
)

// CutIndex cuts an element of a list from the beginning of a path: the name of the list and an index in brackets, such as 2 and
// ".parts" of "messages[2].parts". ok is false, and rest is path, if the path does not begin with such an element.
func CutIndex(path, list string) (n int, rest string, ok bool) {
	inner, ok := strings.CutPrefix(path, list+"[")
	digits, rest, closed := strings.Cut(inner, "]")
	n, err := strconv.Atoi(digits)
	if !ok || !closed || err != nil || n < 0 {
		return 0, path, false
	}
	return n, rest, true
}
