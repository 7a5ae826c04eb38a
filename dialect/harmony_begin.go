package dialect

import (
	"strings"

	"github.com/lathe-run/lathe"
)

// The beginning of a completion is decided byte by byte, because it need not have a mark: plain
// text, a header whose recipient stands in the role part (` to=functions.N<|channel|>…`), or
// messages whose special tokens the server has taken out (`analysisWe need…assistantfinalFour`).

// maxLeadBytes bounds what is buffered of a beginning.
const maxLeadBytes = 256

// leadWords are the beginnings that more text has to decide.
var leadWords = []string{"to=", "assistant to=", "analysis", "assistantanalysis", "assistantcommentary",
	"assistantfinal", "commentary to="}

// harmonyOpenings returns the marks that open a header, each with the first letter of what must
// stand right behind it: without one, a mark is only spoken of.
func harmonyOpenings() []string {
	var list []string
	for c := 'a'; c <= 'z'; c++ {
		list = append(list, "<|start|>"+string(c), "<|channel|>"+string(c))
	}
	return list
}

// decide reads bytes until it is known how the text goes on; false: the piece is used up.
func (h *harmony) decide() bool {
	for h.in != "" {
		c := h.in[0]
		lead := append(h.lead, c)
		took, decided := false, true
		switch {
		case c == '<' && h.state == harmonyBegin:
			h.state = harmonyLead
			return true
		case c == '<' || len(lead) > maxLeadBytes:
			h.leadIsText()
		case h.state == harmonyBegin:
			took, decided = h.beginning(strings.TrimLeft(string(lead), " \t\r\n"), lead)
		default:
			took, decided = h.fusedHeader(strings.TrimLeft(string(lead), " "), lead)
		}
		if took || !decided {
			h.in = h.in[1:]
		}
		if decided {
			h.lead = h.lead[:0]
			return true
		}
		h.lead = lead
	}
	return false
}

// leadIsText gives the lead as text.
func (h *harmony) leadIsText() {
	if h.state != harmonyFused {
		h.kind = lathe.DeltaText
	}
	h.content(h.kind)
	h.emit(h.kind, string(h.lead))
	h.lead = h.lead[:0]
}

// beginning decides how a completion begins. word is lead without white space before it; took
// says that the last byte of it is part of what was decided.
func (h *harmony) beginning(word string, lead []byte) (took, decided bool) {
	switch {
	case word == "":
		return false, false
	case word == "to=", word == "assistant to=":
		h.state = harmonyHeader
		h.header.reset()
		h.header.implicit = true
		h.header.add(string(lead))
		return true, true
	case len(word) == len("analysis")+1 && strings.HasPrefix(word, "analysis") && beginsSentence(word[len(word)-1]):
		h.fuse(lathe.DeltaReasoning)
		return false, true
	case word == "assistantanalysis":
		h.fuse(lathe.DeltaReasoning)
		return true, true
	case word == "assistantfinal":
		h.fuse(lathe.DeltaText)
		return true, true
	case word == "assistantcommentary":
		h.fuse(lathe.DeltaCommentary)
		h.state = harmonyFused
		return true, true
	case word == "commentary to=":
		h.fuse(lathe.DeltaCommentary)
		h.state = harmonyFused
		h.in = " to=" + h.in[1:]
		return false, true
	}
	for _, w := range leadWords {
		if strings.HasPrefix(w, word) {
			return false, false
		}
	}
	h.leadIsText()
	return false, true
}

// beginsSentence reports whether c, right after a channel's name, shows that the two were fused.
func beginsSentence(c byte) bool { return 'A' <= c && c <= 'Z' || c == '"' || c >= 0x80 }

// fuse continues without marks.
func (h *harmony) fuse(kind lathe.DeltaKind) {
	h.marks = fusedMarks
	h.content(kind)
}

// fusedHeader decides whether a fused commentary is a call: ` to=NAME`, maybe a content type, and
// JSON on the same line.
func (h *harmony) fusedHeader(word string, lead []byte) (took, decided bool) {
	const to = "to="
	switch last := lead[len(lead)-1]; {
	case len(word) < len(to) && strings.HasPrefix(to, word):
		return false, false
	case !strings.HasPrefix(word, to) || last == '\n':
		h.leadIsText()
		return false, true
	case last != '{' && last != '[':
		return false, false
	}
	h.header.reset()
	h.header.parts[0].mark = markChannel
	h.header.add("commentary")
	h.header.add(string(lead[:len(lead)-1]))
	if kind := h.header.resolve(h.knows); kind == contentCall {
		h.begin(h.header.recipient)
	} else {
		h.leadIsText()
	}
	return false, true
}

// A message after the first may have lost its `<|start|>`, so that the role comes as text.

// isRoleLead reports whether s, text after a message, may be the beginning of such a header.
func isRoleLead(s string) bool {
	const role, to = "assistant", "to="
	if len(s) <= len(role) {
		return strings.HasPrefix(role, s)
	}
	rest, ok := strings.CutPrefix(s, role)
	if !ok || len(s) > maxLeadBytes || !space(rest[0]) {
		return false
	}
	rest = strings.TrimSpace(rest)
	return strings.HasPrefix(to, rest) || strings.HasPrefix(rest, to) && !strings.ContainsAny(rest, " \t\r\n{[\"")
}

// roleLead takes the lead at a mark: the front of a header, or text.
func (h *harmony) roleLead(mark int) {
	if endsContent(mark) && mark != markChannel || h.lead[len(h.lead)-1] == '=' || len(h.lead) < len("assistant") {
		h.stray()
		return
	}
	h.state = harmonyHeader
	h.header.reset()
	h.header.add(string(h.lead))
	h.lead = h.lead[:0]
}

// stray gives text that stands between two messages.
func (h *harmony) stray() {
	h.count.Stray++
	h.content(lathe.DeltaText)
	h.emit(h.kind, string(h.lead))
	h.lead = h.lead[:0]
}
