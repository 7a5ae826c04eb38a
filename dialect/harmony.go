package dialect

import (
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
)

// The marks of harmony, by their index in harmonyMarks. The fused words are what remains of the marks between two messages if the server
// removes the special tokens from the text.
const (
	markStart = iota
	markEnd
	markMessage
	markChannel
	markConstrain
	markReturn
	markCall
	markRecipient
	fusedAnalysis
	fusedCommentary
	fusedFinal
)

var harmonyTokens = []string{"<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>",
	"<|return|>", "<|call|>", "<|recipient|>"}

var (
	harmonyMarks = newMarks(false, harmonyTokens...)
	fusedMarks   = newMarks(false, append(slices.Clip(harmonyTokens),
		"assistantanalysis", "assistantcommentary", "assistantfinal")...)
)

// harmony is the parser of the format of gpt-oss. The text of a turn begins inside a header, after `<|start|>assistant`, or has no mark
// at all.
type harmony struct {
	reader
	state  harmonyState
	kind   lathe.DeltaKind // the kind of the open message's text
	header header
	lead   []byte // text before the first mark, or after a message, that may still be part of a header

	js  jsonScan // scanner of the arguments
	raw bool     // the arguments are not JSON: the next mark that endsContent ends them

	tool string // the tool of the open call
	kept []byte // the arguments so far; at most max_payload_bytes
	shut []byte // marks inside a string of the arguments, buffered because they end the turn if no text follows
	over int    // the length, in bytes, of a call's arguments that exceed max_payload_bytes

	payload payload // the payload of a message on the `tool` channel

	inFinal bool // the open message is on the final channel
	final   bool // a final message was closed
	between bool // a message of another channel followed the final one
	count   Anomalies
}

type harmonyState uint8

const (
	harmonyBegin   harmonyState = iota // at the beginning: the form of the turn is not known yet
	harmonyLead                        // lead may belong to a header: a mark may follow
	harmonyBetween                     // after a message
	harmonyHeader
	harmonyText
	harmonyArgs
	harmonyOver  // in arguments that exceed max_payload_bytes
	harmonyTool  // in the payload of a message on the `tool` channel
	harmonyFused // after a fused commentary: a header without marks may follow
)

func newHarmony(o Options) Parser {
	h := &harmony{reader: newReader(o, harmonyMarks)}
	h.reader.run, h.reader.close = h.read, h.finish
	h.ends = false
	h.payload.init(&h.reader, o.toolPayload, harmonyPayload)
	return h
}

// Anomalies returns the deviations from the format that the parser has tolerated so far.
func (h *harmony) Anomalies() Anomalies {
	h.count.ToolName = h.mended
	return h.count
}

func (h *harmony) read() {
	for {
		for h.state == harmonyBegin || h.state == harmonyFused {
			if !h.decide() {
				return
			}
		}
		text, mark, ok := h.next()
		switch {
		case !ok:
			return
		case mark < 0:
			h.text(text)
		default:
			h.mark(mark, text)
		}
	}
}

// text reads a run of text without marks.
func (h *harmony) text(s string) {
	h.unshut()
	switch h.state {
	case harmonyText:
		h.emit(h.kind, s)
	case harmonyArgs:
		h.argText(s)
	case harmonyOver:
		h.overText(s)
	case harmonyTool:
		h.payload.add(s)
	case harmonyHeader:
		if !h.header.add(s) {
			h.count.Header++
			h.spill()
			h.emit(h.kind, s)
		}
	case harmonyBetween:
		s = trimSpace(string(h.lead) + s)
		if h.lead = append(h.lead[:0], s...); !isRoleLead(s) {
			h.stray()
		}
	case harmonyLead:
		h.leadIsText()
		h.emit(h.kind, s)
	}
}

// mark reads one mark; text is its spelling.
func (h *harmony) mark(mark int, text string) {
	if h.state == harmonyBetween && len(h.lead) > 0 {
		h.roleLead(mark)
	}
	if (mark == markEnd || mark == markReturn || mark == markCall) && h.inString() && len(h.shut)+len(text) <= maxTurnEndBytes {
		h.shut = append(h.shut, text...)
		return
	}
	h.unshut()
	switch h.state {
	case harmonyArgs:
		if !h.raw && h.js.inString() || !endsContent(mark) {
			h.argText(text)
			return
		}
	case harmonyOver:
		if !h.raw && h.js.inString() || !endsContent(mark) {
			h.overText(text)
			return
		}
	case harmonyTool:
		if h.payload.inString() || !endsContent(mark) {
			h.payload.add(text)
			return
		}
	case harmonyText:
		if !endsContent(mark) {
			h.emit(h.kind, text)
			return
		}
	case harmonyLead:
		if mark == markStart || mark == markEnd || mark == markReturn || mark == markCall {
			if trimSpace(string(h.lead)) != "" {
				h.leadIsText()
			}
			h.lead = h.lead[:0]
		} else {
			h.state = harmonyHeader
			h.header.reset()
			h.header.add(string(h.lead))
			h.lead = h.lead[:0]
		}
	}
	if h.state == harmonyHeader {
		switch {
		case mark == markMessage:
			h.open(false)
			return
		case !endsContent(mark) || mark == markChannel:
			h.header.part(mark)
			return
		case h.header.implicit:
			h.spill()
		default:
			h.count.Header++
			h.open(true)
		}
	}
	h.closeMessage(false)
	switch mark {
	case markStart:
		h.state = harmonyHeader
		h.header.reset()
	case markChannel, markConstrain, markRecipient:
		h.state = harmonyHeader
		h.header.reset()
		h.header.part(mark)
	case markMessage:
		h.content(lathe.DeltaText)
	case fusedAnalysis:
		h.content(lathe.DeltaReasoning)
	case fusedFinal:
		h.content(lathe.DeltaText)
	case fusedCommentary:
		h.content(lathe.DeltaCommentary)
		h.state = harmonyFused
	}
}

// inString reports whether the next byte belongs to a JSON string in the arguments of a call.
func (h *harmony) inString() bool {
	return h.state == harmonyArgs && !h.raw && h.js.inString() || h.state == harmonyTool && h.payload.inString()
}

// unshut appends the buffered marks to the arguments, as part of a string: text followed them, so they did not end the turn.
func (h *harmony) unshut() {
	if len(h.shut) == 0 {
		return
	}
	s := string(h.shut)
	h.shut = h.shut[:0]
	if h.state == harmonyTool {
		h.payload.add(s)
	} else {
		h.argText(s)
	}
}

// endsContent reports whether a mark ends the content of a message. The marks that do not are text there.
func endsContent(mark int) bool {
	return mark != markMessage && mark != markConstrain && mark != markRecipient
}

// content begins the content of a message; kind is the kind of its deltas.
func (h *harmony) content(kind lathe.DeltaKind) {
	h.state, h.kind = harmonyText, kind
}

// trimSpace removes JSON's white space from the beginning of s.
func trimSpace(s string) string { return strings.TrimLeft(s, " \n\t\r") }

// spill emits the header as text, because it is invalid or too long.
func (h *harmony) spill() {
	h.content(lathe.DeltaText)
	h.emit(h.kind, h.header.text())
}

// open begins the content of a message after its header. If bare is true, the header ended without `<|message|>`, and the content begins
// with the unparsed rest of the header.
func (h *harmony) open(bare bool) {
	kind := h.header.resolve(h.knows)
	h.note(kind)
	rest := ""
	if bare {
		rest = string(h.header.rest)
	}
	switch kind {
	case contentCall:
		h.begin(h.header.recipient)
		h.argText(rest)
	case contentTool:
		h.state = harmonyTool
		h.payload.reset()
		h.payload.add(rest)
	default:
		h.content(kind.delta())
		h.emit(h.kind, rest)
	}
}

// begin opens the call of the tool with this name.
func (h *harmony) begin(name []byte) {
	h.state, h.js, h.raw = harmonyArgs, jsonScan{lax: true}, false
	if h.kept == nil {
		h.kept = make([]byte, 0, min(h.opts.MaxPayloadBytes, maxToolPayload))
	}
	h.kept, h.tool = h.kept[:0], h.toolName(name)
	h.start("", h.tool, false)
}

// argText appends argument text to the open call. A call whose arguments exceed max_payload_bytes is emitted as unreadable text.
func (h *harmony) argText(s string) {
	part := s[:min(len(s), h.opts.MaxPayloadBytes-len(h.kept))]
	h.follow(part)
	h.args(part)
	h.kept = append(h.kept, part...)
	if s = s[len(part):]; s == "" {
		return
	}
	h.state, h.over, h.unreadable = harmonyOver, len(h.kept), true
	h.emit(lathe.DeltaText, string(h.kept))
	h.overText(s)
}

// overText emits argument text of a call that is too long, as text, and counts it.
func (h *harmony) overText(s string) {
	h.follow(s)
	h.over += len(s)
	if room := maxExcerptBytes - len(h.kept); room > 0 { // max_payload_bytes is smaller than the excerpt
		h.kept = append(h.kept, s[:min(len(s), room)]...)
	}
	h.emit(lathe.DeltaText, s)
}

// follow passes argument text to the JSON scanner. Once the text is not JSON, it sets raw.
func (h *harmony) follow(s string) {
	if h.raw {
		return
	}
	if first := trimSpace(s); first != "" && h.js.depth == 0 && h.js.state == jsonValue &&
		first[0] != '{' && first[0] != '[' && string(h.header.contentType) == "code" {
		h.raw = true // code may begin with a quote, but is not a JSON string
		return
	}
	if n := h.js.scan(s); n < len(s) && (h.js.state == jsonBad || trimSpace(s[n:]) != "") {
		h.raw = true
	}
}

// closeMessage ends the open message. cut says that the text of the turn ended without a mark that closes the message.
func (h *harmony) closeMessage(cut bool) {
	switch h.state {
	case harmonyArgs:
		h.end(cut && !h.argsWhole())
	case harmonyOver:
		h.fail(lathe.CodePayloadTooLarge, h.tool, string(h.kept), h.over)
	case harmonyTool:
		h.payload.close(cut)
	}
	h.final = h.final || h.inFinal
	h.inFinal = false
	h.state = harmonyBetween
}

// argsWhole reports whether arguments count as complete although no mark closed them. Servers do not return the mark that ends a call,
// because it also ends the generation. So JSON is complete if its brackets are closed, and text that never began as JSON is complete
// unless the content type of the header is json.
func (h *harmony) argsWhole() bool {
	switch kind := string(h.header.contentType); {
	case h.js.whole():
		return true
	case kind == "" || kind == "json":
		return kind == "" && h.raw && h.js.depth == 0
	}
	return true
}

// finish ends the text: it emits what is buffered and closes the open message.
func (h *harmony) finish() {
	switch h.state {
	case harmonyBegin, harmonyLead, harmonyFused:
		h.leadIsText()
	case harmonyHeader:
		h.closeHeader()
	case harmonyBetween:
		if len(h.lead) > 0 {
			h.stray()
		}
	}
	h.closeMessage(true)
}

// closeHeader ends the text inside a header. The header is markup and is not emitted; an incomplete call in it is a ParseError.
func (h *harmony) closeHeader() {
	if h.header.implicit {
		h.spill()
		return
	}
	h.count.Truncated++
	switch kind := h.header.resolve(h.knows); kind {
	case contentCall, contentTool:
		text := h.header.text()
		h.fail(lathe.CodeIncompleteCall, "", text, len(text))
		h.cut = true
	default:
		if rest := string(h.header.rest); !beginsToken(rest) {
			h.emit(kind.delta(), rest)
		}
	}
}

// beginsToken reports whether s is the beginning of a mark.
func beginsToken(s string) bool {
	_, part := harmonyMarks.at(s, "")
	return part >= 0
}

// note counts deviations in the header of a message, and the order of messages after a final one.
func (h *harmony) note(kind content) {
	h.count.UnknownChannel += h.header.unknown
	h.count.ForeignRole += h.header.foreign
	h.inFinal = kind == contentFinal
	if !h.final {
		return
	}
	switch kind {
	case contentFinal:
		h.count.ExtraFinal++
		if h.between {
			h.count.InterleavedFinal++
		}
	case contentAnalysis:
		h.count.AnalysisAfterFinal++
	case contentCommentary:
		h.count.CommentaryAfterFinal++
	}
	h.between = kind != contentFinal
}
