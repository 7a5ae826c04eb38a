package provider

import (
	"strings"

	"github.com/lathe-run/lathe"
)

const (
	// window is the minimal length, in bytes, of a quote without quotation marks. Shorter pieces occur in much English text.
	window = 16
	// maxMarked is the maximal number of pieces between quotation marks that are searched for.
	maxMarked = 16
	// maxSearched is the maximal length of the searched text, in bytes. For a longer conversation, unquote returns "".
	maxSearched = 4 << 20
	omitted     = "…"
)

// unquote returns words, the text of a server, without what it quotes of msgs: each piece of at least window bytes that is in one of the
// messages, and each piece between quotation marks that is in one of them, becomes "…". It takes time proportional to the length of msgs;
// words has at most maxMessage bytes.
func unquote(words string, msgs []lathe.Message) string {
	if words == "" {
		return ""
	}
	hidden := make([]bool, len(words))
	at := map[[window]byte][]int{} // the offsets in words at which each piece of window bytes begins
	for i := 0; i+window <= len(words); i++ {
		key := [window]byte([]byte(words[i : i+window]))
		at[key] = append(at[key], i)
	}
	marked, searched := betweenMarks(words), 0
	eachText(msgs, func(text string) {
		if searched += len(text); searched > maxSearched {
			return
		}
		for i := 0; i+window <= len(text); i++ {
			key := [window]byte([]byte(text[i : i+window]))
			for _, from := range at[key] {
				hide(hidden[from : from+window])
			}
			delete(at, key) // visit each place once: it is hidden now
		}
		for _, m := range marked {
			if strings.Contains(text, words[m[0]:m[1]]) {
				hide(hidden[m[0]:m[1]])
			}
		}
	})
	if searched > maxSearched {
		return ""
	}
	var b strings.Builder
	for i := 0; i < len(words); {
		if !hidden[i] {
			b.WriteByte(words[i])
			i++
			continue
		}
		b.WriteString(omitted)
		for i < len(words) && hidden[i] {
			i++
		}
	}
	return strings.ToValidUTF8(b.String(), "")
}

func hide(part []bool) {
	for i := range part {
		part[i] = true
	}
}

// betweenMarks returns the first maxMarked pieces of s between two equal quotation marks, as begin and end offsets.
func betweenMarks(s string) (out [][2]int) {
	for _, mark := range [...]byte{'\'', '"', '`'} {
		open := -1
		for i := range len(s) {
			if s[i] != mark {
				continue
			}
			if open >= 0 && i > open+1 && len(out) < maxMarked {
				out = append(out, [2]int{open + 1, i})
			}
			open = i
		}
	}
	return out
}

// eachText calls f with each text of msgs: of users, of models and of tools.
func eachText(msgs []lathe.Message, f func(string)) {
	for _, m := range msgs {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case lathe.Text:
				f(p.Text)
			case lathe.Reasoning:
				f(p.Text)
			case lathe.Refusal:
				f(p.Text)
			case lathe.ToolCall:
				f(p.Arguments)
			case lathe.ToolResult:
				f(p.Content)
			case lathe.Blob, lathe.Opaque:
			}
		}
	}
}
