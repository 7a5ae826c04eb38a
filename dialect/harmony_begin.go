package dialect

import (
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
)

// The beginning of a turn is read byte by byte, because it may have no mark. It is plain text, a header whose recipient is in the role
// part (` to=functions.N<|channel|>…`), or messages without special tokens, because the server removed them
// (`analysisWe need…assistantfinalFour`).

// maxLeadBytes is the maximal number of bytes that are buffered at the beginning of a turn.
const maxLeadBytes = 256

// leadWords are beginnings of a turn whose form is only known when the next bytes are read.
var leadWords = []string{"to=", "assistant to=", "analysis", "assistantanalysis", "assistantcommentary",
	"assistantfinal", "commentary to="}

// harmonyOpenings returns the marks by which auto recognizes a header, each with the first letter of the text after it. A mark without a
// letter directly after it is only mentioned.
func harmonyOpenings() []string {
	var list []string
	for c := 'a'; c <= 'z'; c++ {
		list = append(list, "<|start|>"+string(c), "<|channel|>"+string(c))
	}
	return list
}

// A leadForm is what is known of the lead, the bytes read so far.
type leadForm uint8

const (
	leadUnknown  leadForm = iota // more bytes are required
	leadComplete                 // the form is known, and the lead belongs to it
	leadExceeded                 // the form is known, and the last byte of the lead is the first after it
)

// decide reads bytes until the form of the text is known. It returns false if the piece ended before.
func (h *harmony) decide() bool {
	for h.in != "" {
		c := h.in[0]
		lead := append(h.lead, c)
		if c == '<' && h.state == harmonyBegin {
			h.state = harmonyLead
			return true
		}
		var form leadForm
		switch {
		case c == '<' || len(lead) > maxLeadBytes:
			h.leadIsText()
			form = leadExceeded
		case h.state == harmonyBegin:
			form = h.beginTurn(trimSpace(string(lead)), lead)
		default:
			form = h.readFusedHeader(strings.TrimLeft(string(lead), " "), lead)
		}
		if form != leadExceeded {
			h.in = h.in[1:]
		}
		if form != leadUnknown {
			h.lead = h.lead[:0]
			return true
		}
		h.lead = lead
	}
	return false
}

// leadIsText emits the buffered lead as text of the current kind.
func (h *harmony) leadIsText() {
	if h.state != harmonyFused {
		h.kind = lathe.DeltaText
	}
	h.content(h.kind)
	h.emit(h.kind, string(h.lead))
	h.lead = h.lead[:0]
}

// leadIsHeader begins a header with the buffered lead.
func (h *harmony) leadIsHeader() {
	h.state = harmonyHeader
	h.header.reset()
	h.header.add(string(h.lead))
	h.lead = h.lead[:0]
}

// beginTurn begins the first message once lead shows the form of the turn. word is lead without leading white space.
func (h *harmony) beginTurn(word string, lead []byte) leadForm {
	afterAnalysis, hasAnalysis := strings.CutPrefix(word, "analysis")
	switch {
	case word == "":
		return leadUnknown
	case word == "to=", word == "assistant to=":
		h.state = harmonyHeader
		h.header.reset()
		h.header.implicit = true
		h.header.add(string(lead))
		return leadComplete
	case hasAnalysis && len(afterAnalysis) == 1 && beginsSentence(afterAnalysis[0]):
		h.fuse(lathe.DeltaReasoning)
		return leadExceeded
	case word == "assistantanalysis":
		h.fuse(lathe.DeltaReasoning)
		return leadComplete
	case word == "assistantfinal":
		h.fuse(lathe.DeltaText)
		return leadComplete
	case word == "assistantcommentary":
		h.fuse(lathe.DeltaCommentary)
		h.state = harmonyFused
		return leadComplete
	case word == "commentary to=":
		h.fuse(lathe.DeltaCommentary)
		h.state = harmonyFused
		h.in = " to=" + h.in[1:]
		return leadExceeded
	}
	if slices.ContainsFunc(leadWords, func(w string) bool { return strings.HasPrefix(w, word) }) {
		return leadUnknown
	}
	h.leadIsText()
	return leadExceeded
}

// beginsSentence reports whether c, the byte directly after the name of a channel, begins the content of a message without marks.
func beginsSentence(c byte) bool { return 'A' <= c && c <= 'Z' || c == '"' || c >= 0x80 }

// fuse continues in a text without special tokens; kind is the kind of its first message.
func (h *harmony) fuse(kind lathe.DeltaKind) {
	h.marks = fusedMarks
	h.content(kind)
}

// readFusedHeader reads what follows a fused commentary: the header of a call is ` to=NAME`, optionally a content type, and JSON on the same
// line; all else is text. word is lead without leading spaces.
func (h *harmony) readFusedHeader(word string, lead []byte) leadForm {
	const to = "to="
	switch last := lead[len(lead)-1]; {
	case len(word) < len(to) && strings.HasPrefix(to, word):
		return leadUnknown
	case !strings.HasPrefix(word, to) || last == '\n':
		h.leadIsText()
		return leadExceeded
	case last != '{' && last != '[':
		return leadUnknown
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
	return leadExceeded
}

// If the server removed the `<|start|>` of a message after the first, its role is text.

// isRoleLead reports whether s, text between two messages, may be the beginning of a header without `<|start|>`: "assistant", optionally
// with "to=NAME".
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

// roleLead reads a mark after the lead of a header without `<|start|>`: it continues the header, or emits the lead as stray text.
func (h *harmony) roleLead(mark int) {
	isCut := len(h.lead) < len("assistant") || h.lead[len(h.lead)-1] == '='
	continues := !endsContent(mark) || mark == markChannel
	if isCut || !continues {
		h.stray()
	} else {
		h.leadIsHeader()
	}
}

// stray emits the lead as text between two messages, and counts it.
func (h *harmony) stray() {
	h.count.Stray++
	h.content(lathe.DeltaText)
	h.emit(h.kind, string(h.lead))
	h.lead = h.lead[:0]
}
