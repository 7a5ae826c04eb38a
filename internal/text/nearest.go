package text

import "strings"

// maxBytes limits the length of the words that are compared.
const maxBytes = 128

// Nearest returns the word with the smallest [Distance] to s, ignoring case, or "" if no word is near enough: at most a third of the length
// of s, plus one. Of several words at the same distance it returns the first.
func Nearest(s string, words []string) string {
	if len(s) > maxBytes {
		return ""
	}
	best, below := "", len(s)/3+2
	for _, w := range words {
		if d := Distance(strings.ToLower(s), strings.ToLower(w)); d < below && d < len(w) {
			best, below = w, d
		}
	}
	return best
}

// Distance returns the number of bytes to insert, delete, replace or swap with their neighbour to turn a into b. Its time is proportional
// to len(a) × len(b).
func Distance(a, b string) int {
	older, old, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range old {
		old[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(old[j]+1, row[j-1]+1, old[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
		}
		older, old, row = old, row, older
	}
	return old[len(b)]
}

const (
	maxSuggestions = 3 // names in one message
	suggestWithin  = 2 // largest distance of a suggested name; of a word of less than six letters it is 1
)

// Suggest returns "did you mean …?" with at most three names that begin with word or differ from it by at most two letters, by one if word
// has less than six. It returns otherwise if no name does.
func Suggest(word string, names []string, otherwise string) string {
	if word == "" || len(word) > maxBytes {
		return otherwise
	}
	var near []string
	lower, within := strings.ToLower(word), max(1, min(len(word)/3, suggestWithin))
	for _, n := range names {
		name := strings.ToLower(n)
		if len(near) < maxSuggestions && len(n) <= maxBytes && (strings.HasPrefix(name, lower) || Distance(lower, name) <= within) {
			near = append(near, n)
		}
	}
	if len(near) == 0 {
		return otherwise
	}
	return "did you mean " + strings.Join(near, " or ") + "?"
}
