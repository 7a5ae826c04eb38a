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

// turnEndMarks finds those of turnEnds that begin with two bytes.
var turnEndMarks = newMarks(false, turnEnds...)

// turnEndFirst are the bytes that turnEnds begin with.
const turnEndFirst = "<["

var longestTurnEnd = func() (n int) {
	for _, end := range turnEnds {
		n = max(n, len(end))
	}
	return n
}()

// turnEndLast has the last bytes of turnEnds, turnEndBefore the bytes before them.
var turnEndLast, turnEndBefore = func() (last, before [256]bool) {
	for _, end := range turnEnds {
		last[end[len(end)-1]], before[end[len(end)-2]] = true, true
	}
	return last, before
}()

// turnTail returns the length of the tokens at the end of s. The last may be cut off: whole says that it is not.
func turnTail(s string) (n int, whole bool) {
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

// continuesTurnEnd reports whether tail, which turnTail found, and text after it may end in a token that begins in
// tail, or in one after a whole token in tail.
func continuesTurnEnd(tail, text string) bool {
	if len(tail) >= longestTurnEnd {
		return true
	}
	if len(tail) == 1 && text != "" && !turnEndMarks.made().pair(tail[0], text[0]) {
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
	m := turnEndMarks.made()
	for i := indexEither(s, max(0, len(s)-longestTurnEnd+1), turnEndFirst[0], turnEndFirst[1]); i < len(s); i = indexEither(s, i+1, turnEndFirst[0], turnEndFirst[1]) {
		if i+1 == len(s) {
			return 1
		}
		for _, k := range m.groups[m.pairs[m.first[s[i]]][s[i+1]]] {
			if end := turnEnds[k]; len(s)-i < len(end) && end[:len(s)-i] == s[i:] {
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
	if len(s) < 2 || !turnEndLast[s[len(s)-1]] || !turnEndBefore[s[len(s)-2]] {
		return 0
	}
	for _, end := range turnEnds {
		if strings.HasSuffix(s, end) {
			return n + len(end)
		}
	}
	return 0
}
