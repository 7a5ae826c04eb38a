package dialect

import "strings"

// turnEnds are the tokens by which models end a turn, but for those of harmony, which are marks of its own.
// A server may pass them on as text.
var turnEnds = []string{
	"<|im_end|>", "<|endoftext|>", "<|end_of_text|>", "<|eot_id|>", "<|eom_id|>", "<|eot|>", "<|eom|>", "<|end|>", "</s>", "<eos>",
	"<end_of_turn>", "<turn|>", "<|tool_response>", "<start_function_response>", "<｜end▁of▁sentence｜>", "[e~[", "<seed:eos>",
	"<|observation|>", "<|user|>", "<|END_OF_TURN_TOKEN|>", "<SPECIAL_12>",
}

const (
	maxTurnEndBytes   = 128 // of tokens that are buffered
	maxTurnSpaceBytes = 2   // of white space after one
)

// turnEndMarks tells by two bytes whether one of turnEnds may begin with them.
var turnEndMarks = newMarks(false, turnEnds...)

var longestTurnEnd = func() (n int) {
	for _, end := range turnEnds {
		n = max(n, len(end))
	}
	return n
}()

// turnEndLast has the last bytes of turnEnds.
var turnEndLast = func() (last [256]bool) {
	for _, end := range turnEnds {
		last[end[len(end)-1]] = true
	}
	return last
}()

// turnTail returns the length of the tokens at the end of s. The last may be cut off: whole says that it is not.
func turnTail(s string) (n int, whole bool) {
	if noTurnEnd(s) {
		return 0, false
	}
	if whole = turnEnd(s) > 0; !whole {
		if n = cutTurnEnd(s); n == 0 {
			return 0, false
		}
	}
	for {
		k := turnEnd(s[:len(s)-n])
		if k == 0 || n+k > maxTurnEndBytes {
			return n, whole
		}
		n += k
	}
}

// noTurnEnd reports that s, as most text, neither ends as one of turnEnds does nor has two bytes near its end that begin one. It
// may return false for a text without a tail.
func noTurnEnd(s string) bool {
	n := len(s)
	for n > 0 && len(s)-n < maxTurnSpaceBytes && space(s[n-1]) {
		n--
	}
	if n > 0 && turnEndLast[s[n-1]] {
		return false
	}
	for i := max(0, len(s)-longestTurnEnd+1); i < len(s); i++ {
		if turnEndMarks.first[s[i]] != 0 && (i+1 == len(s) || turnEndMarks.pair(s[i], s[i+1])) {
			return false
		}
	}
	return true
}

// continuesTurnEnd reports whether tail, which turnTail found, and text after it may end in a token that begins in
// tail, or in one after a whole token in tail.
func continuesTurnEnd(tail, text string) bool {
	if len(tail) >= longestTurnEnd {
		return true
	}
	if len(tail) == 1 && text != "" && !turnEndMarks.pair(tail[0], text[0]) {
		return false // tail is the first byte of a token, for none has one byte
	}
	for _, end := range turnEnds {
		if rest, ok := strings.CutPrefix(end, tail); ok && rest != "" && (strings.HasPrefix(text, rest) || strings.HasPrefix(rest, text)) {
			return true
		}
	}
	_, whole := turnTail(tail)
	return whole || turnEnd(tail[:len(tail)-cutTurnEnd(tail)]) > 0
}

// cutTurnEnd returns the length of the beginning of a token that s ends in.
func cutTurnEnd(s string) int {
	for i := max(0, len(s)-longestTurnEnd+1); i < len(s); i++ {
		if turnEndMarks.first[s[i]] == 0 || i+1 < len(s) && !turnEndMarks.pair(s[i], s[i+1]) {
			continue
		}
		for _, end := range turnEnds {
			if len(s)-i < len(end) && (i+1 == len(s) || end[1] == s[i+1]) && strings.HasPrefix(end, s[i:]) {
				return len(s) - i
			}
		}
	}
	return 0
}

// turnEnd returns the length of the token that s ends with, and of white space after it.
func turnEnd(s string) int {
	n := 0
	for n < maxTurnSpaceBytes && n < len(s) && space(s[len(s)-1-n]) {
		n++
	}
	s = s[:len(s)-n]
	if s == "" || s[len(s)-1] != '>' && s[len(s)-1] != '[' {
		return 0
	}
	for _, end := range turnEnds {
		if strings.HasSuffix(s, end) {
			return n + len(end)
		}
	}
	return 0
}
