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

var harmonyTokens = strings.Fields("<|start|> <|end|> <|message|> <|channel|> <|constrain|> <|return|> <|call|> <|recipient|>")

var (
	harmonyMarks = newMarks(false, harmonyTokens...)
	fusedMarks   = newMarks(false, append(slices.Clip(harmonyTokens),
		"assistantanalysis", "assistantcommentary", "assistantfinal")...)
)

// harmony is the parser of the format of gpt-oss. A turn is a sequence of messages, each with a header and a content:
//
//	<|channel|>analysis<|message|>I should write it.<|end|><|start|>assistant<|channel|>commentary to=functions.write
//	<|constrain|>json<|message|>{"path":"a.txt"}<|call|>
//
// The text of a turn begins inside a header, after `<|start|>assistant`, or has no mark at all: see harmony_begin.go. harmony_header.go
// parses headers.
type harmony struct {
	reader
	state  harmonyState
	kind   lathe.DeltaKind // the kind of the open message's text
	header header          // the header being read, or that of the open message
	lead   []byte          // text before the first mark, or after a message, that may still be part of a header

	// The open call.
	tool      string  // the name of the tool
	scan      argScan // scans the arguments
	arguments []byte  // the arguments so far; at most max_payload_bytes
	argsLen   int     // the length, in bytes, of arguments that exceed max_payload_bytes
	payload   payload // the payload of a message on the `tool` channel
	turnEnds  []byte  // marks inside a string of the arguments or the payload, buffered because they end the turn if no text follows

	order messageOrder
	count Anomalies
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

// inContent reports whether the content of a message is being read.
func (s harmonyState) inContent() bool {
	switch s {
	case harmonyText, harmonyArgs, harmonyOver, harmonyTool:
		return true
	}
	return false
}

func newHarmony(o Options) fullParser {
	h := &harmony{reader: newReader(o, harmonyMarks)}
	h.reader.run, h.reader.close = h.read, h.finish
	h.holdsEnds = false
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
	h.addTurnEnds()
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
			h.headerIsText()
			h.emit(h.kind, s)
		}
	case harmonyBetween:
		s = trimSpace(string(h.lead) + s)
		h.lead = append(h.lead[:0], s...)
		if !isRoleLead(s) {
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
	mayEndTurn := h.inString() && endsTurn(mark) && h.state != harmonyOver
	if mayEndTurn && len(h.turnEnds)+len(text) <= maxTurnEndBytes {
		h.turnEnds = append(h.turnEnds, text...)
		return
	}
	h.addTurnEnds()
	isText := h.inString() || !endsContent(mark)
	if isText && h.state.inContent() {
		h.text(text)
		return
	}
	beginsHeader := mark != markStart && !endsTurn(mark)
	switch {
	case h.state != harmonyLead:
	case beginsHeader:
		h.leadIsHeader()
	case trimSpace(string(h.lead)) != "":
		h.leadIsText()
	}
	h.lead = h.lead[:0]
	if h.state == harmonyHeader && h.headerMark(mark) {
		return
	}
	h.closeMessage(whole)
	h.openMessage(mark)
}

// endsTurn reports whether a mark may end the turn.
func endsTurn(mark int) bool { return mark == markEnd || mark == markReturn || mark == markCall }

// headerMark reads a mark in or after the header. It returns false if the mark does not belong to the header.
func (h *harmony) headerMark(mark int) bool {
	switch {
	case mark == markMessage:
		h.open()
	case !endsContent(mark) || mark == markChannel:
		h.header.part(mark)
	case h.header.implicit:
		h.headerIsText()
		return false
	default: // the content begins with the unparsed rest of the header
		h.count.Header++
		h.open()
		h.text(string(h.header.unparsed))
		return false
	}
	return true
}

// openMessage begins the message that begins with mark, if any does.
func (h *harmony) openMessage(mark int) {
	switch mark {
	case markStart, markChannel, markConstrain, markRecipient:
		h.state = harmonyHeader
		h.header.reset()
		if mark != markStart {
			h.header.part(mark)
		}
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
	switch h.state {
	case harmonyArgs, harmonyOver:
		return h.scan.inString()
	case harmonyTool:
		return h.payload.inString()
	}
	return false
}

// addTurnEnds appends the buffered marks to the arguments, as part of a string: text followed them, so they did not end the turn.
func (h *harmony) addTurnEnds() {
	if len(h.turnEnds) == 0 {
		return
	}
	s := string(h.turnEnds)
	h.turnEnds = h.turnEnds[:0]
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

// headerIsText emits the header as text, because it is invalid or too long.
func (h *harmony) headerIsText() {
	h.content(lathe.DeltaText)
	h.emit(h.kind, h.header.text())
}

// open begins the content of a message after its header.
func (h *harmony) open() {
	kind := h.header.resolve(h.knows)
	if kind == contentUnknown {
		h.count.UnknownChannel++
	}
	if h.header.foreign {
		h.count.ForeignRole++
	}
	h.order.open(kind, &h.count)
	switch kind {
	case contentCall:
		h.begin(h.header.recipient)
	case contentTool:
		h.state = harmonyTool
		h.payload.reset()
	default:
		h.content(kind.delta())
	}
}

// begin opens the call of the tool with this name.
func (h *harmony) begin(name []byte) {
	h.state, h.scan = harmonyArgs, argScan{js: jsonScan{lax: true}, contentType: h.header.contentType}
	if h.arguments == nil {
		h.arguments = make([]byte, 0, min(h.opts.MaxPayloadBytes, maxToolPayload))
	}
	h.arguments, h.tool = h.arguments[:0], h.toolName(name)
	h.start("", h.tool)
}

// argText appends argument text to the open call. A call whose arguments exceed max_payload_bytes is emitted as unreadable text.
func (h *harmony) argText(s string) {
	part := s[:min(len(s), h.opts.MaxPayloadBytes-len(h.arguments))]
	h.scan.add(part)
	h.args(part)
	h.arguments = append(h.arguments, part...)
	if s = s[len(part):]; s == "" {
		return
	}
	h.state, h.argsLen, h.unreadable = harmonyOver, len(h.arguments), true
	h.emit(lathe.DeltaText, string(h.arguments))
	h.overText(s)
}

// overText emits argument text of a call that is too long, as text, and counts it.
func (h *harmony) overText(s string) {
	h.scan.add(s)
	h.argsLen += len(s)
	if room := maxExcerptBytes - len(h.arguments); room > 0 { // max_payload_bytes is smaller than the excerpt
		h.arguments = append(h.arguments, s[:min(len(s), room)]...)
	}
	h.emit(lathe.DeltaText, s)
}

// An argScan scans the arguments of a call, which may be JSON or other text, such as code.
type argScan struct {
	js          jsonScan
	contentType []byte // from the header of the message
	notJSON     bool   // the arguments are not JSON: the next mark that endsContent ends them
}

// add scans the next part of the arguments.
func (a *argScan) add(s string) {
	if a.notJSON {
		return
	}
	begins := a.js.depth == 0 && a.js.state == jsonValue
	if first := trimSpace(s); begins && first != "" && first[0] != '{' && first[0] != '[' && string(a.contentType) == "code" {
		a.notJSON = true // code may begin with a quote, but is not a JSON string
		return
	}
	n := a.js.scan(s)
	a.notJSON = n < len(s) && (a.js.state == jsonBad || trimSpace(s[n:]) != "")
}

// inString reports whether the next byte belongs to a JSON string.
func (a *argScan) inString() bool { return !a.notJSON && a.js.inString() }

// complete reports whether arguments count as complete although no mark closed them. Servers do not return the mark that ends a call,
// because it also ends the generation. So JSON is complete if its brackets are closed, and text that never began as JSON is complete
// unless the content type is json.
func (a *argScan) complete() bool {
	if a.js.whole() {
		return true
	}
	switch string(a.contentType) {
	case "":
		return a.notJSON && a.js.depth == 0
	case "json":
		return false
	}
	return true
}

// closeMessage ends the open message; cut is truncated if no mark closed the message.
func (h *harmony) closeMessage(cut bool) {
	switch h.state {
	case harmonyArgs:
		h.end(cut && !h.scan.complete())
	case harmonyOver:
		h.fail(lathe.CodePayloadTooLarge, h.tool, string(h.arguments), h.argsLen)
	case harmonyTool:
		h.payload.close(cut)
	}
	h.order.close()
	h.state = harmonyBetween
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
	h.closeMessage(truncated)
}

// closeHeader ends the text inside a header. The header is markup and is not emitted; an incomplete call in it is a ParseError.
func (h *harmony) closeHeader() {
	if h.header.implicit {
		h.headerIsText()
		return
	}
	h.count.Truncated++
	switch kind := h.header.resolve(h.knows); kind {
	case contentCall, contentTool:
		text := h.header.text()
		h.fail(lathe.CodeIncompleteCall, "", text, len(text))
		h.cut = true
	default:
		rest := string(h.header.unparsed)
		if _, part := harmonyMarks.at(rest, ""); part < 0 { // rest is not the beginning of a mark
			h.emit(kind.delta(), rest)
		}
	}
}

// A messageOrder finds messages that follow a closed final message.
type messageOrder struct {
	inFinal bool // the open message is on the final channel
	final   bool // a final message was closed
	between bool // a message of another channel followed the final one
}

// open begins a message with content of this kind, and counts it if it is out of order.
func (o *messageOrder) open(kind content, count *Anomalies) {
	o.inFinal = kind == contentFinal
	if !o.final {
		return
	}
	switch kind {
	case contentFinal:
		count.ExtraFinal++
		if o.between {
			count.InterleavedFinal++
		}
	case contentAnalysis:
		count.AnalysisAfterFinal++
	case contentCommentary:
		count.CommentaryAfterFinal++
	}
	o.between = kind != contentFinal
}

// close ends the open message, if any is open.
func (o *messageOrder) close() {
	o.final = o.final || o.inFinal
	o.inFinal = false
}
