package dialect

import (
	"slices"
	"strings"
)

// turnEnds are the tokens with which models end a turn, except those of harmony, which are marks of that dialect. A server may return
// them as text.
var turnEnds = strings.Fields(`
	<|im_end|> <|endoftext|> <|end_of_text|> <|eot_id|> <|eom_id|> <|eot|> <|eom|> <|end|> </s> <eos>
	<end_of_turn> <turn|> <|tool_response> <start_function_response> <｜end▁of▁sentence｜> [e~[ <seed:eos>
	<|observation|> <|user|> <|END_OF_TURN_TOKEN|> <SPECIAL_12>
`)

const (
	maxTurnEndBytes   = 128 // maximal length of buffered tokens
	maxTurnSpaceBytes = 2   // maximal length of white space after a token
)

var longestTurnEnd = func() (n int) {
	for _, end := range turnEnds {
		n = max(n, len(end))
	}
	return n
}()

// turnTail returns the length of the tokens at the end of s. whole is false if the last token is truncated: in `</tool_call><|eom|>\n<|eot`
// the tail is `<|eom|>\n<|eot`, and not whole.
func turnTail(s string) (n int, whole bool) {
	whole = turnEnd(s) > 0
	if !whole {
		n = cutTurnEnd(s)
		if n == 0 {
			return 0, false
		}
	}
	for {
		length := turnEnd(s[:len(s)-n])
		if length == 0 || n+length > maxTurnEndBytes {
			return n, whole
		}
		n += length
	}
}

// continuesTurnEnd reports whether tail, the tokens that turnTail returned, and text after it may end in a token that begins in tail, or
// in a further token after tail.
func continuesTurnEnd(tail, text string) bool {
	if len(tail) >= longestTurnEnd {
		return true
	}
	for _, end := range turnEnds {
		missing, ok := strings.CutPrefix(end, tail)
		agrees := strings.HasPrefix(text, missing) || strings.HasPrefix(missing, text)
		if ok && missing != "" && agrees {
			return true
		}
	}
	_, whole := turnTail(tail)
	return whole || turnEnd(tail[:len(tail)-cutTurnEnd(tail)]) > 0
}

// cutTurnEnd returns the length of the beginning of a token at the end of s, or 0.
func cutTurnEnd(s string) int {
	for n := min(len(s), longestTurnEnd-1); n > 0; n-- {
		tail := s[len(s)-n:]
		mayBegin := tail[0] == '<' || tail[0] == '[' // the first bytes of all tokens
		isBegun := func(end string) bool { return len(end) > n && strings.HasPrefix(end, tail) }
		if mayBegin && slices.ContainsFunc(turnEnds, isBegun) {
			return n
		}
	}
	return 0
}

// turnEnd returns the length of the complete token at the end of s, with white space after it, or 0.
func turnEnd(s string) int {
	n := 0
	for n < maxTurnSpaceBytes && n < len(s) && space(s[len(s)-1-n]) {
		n++
	}
	s = s[:len(s)-n]
	for _, end := range turnEnds {
		if strings.HasSuffix(s, end) {
			return n + len(end)
		}
	}
	return 0
}
