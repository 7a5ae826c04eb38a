package gemini

import (
	"cmp"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// A Writer implements [wire.Writer]. Each delta with text is one chunk. A call is one part of a chunk, which is written when the arguments
// are complete, in the order of the calls. The finish reason and the usage are in the last chunk. That chunk always has a part, since
// clients treat a last chunk without a part as a broken answer. An answer that is not streamed is one object with the parts of all chunks,
// in which consecutive texts are joined.
type Writer struct {
	wire.PlainWriter

	array        bool // the chunks are elements of one JSON array
	whole        bool // the answer is not streamed
	req          *wire.ClientRequest
	run          string
	tail         []byte // end of each chunk, after its candidates
	hideThoughts bool   // the client has not requested thoughts, which this wire sends only on request

	// out is the destination of the Append method in progress. The methods without a destination append to it, within write.
	out wire.JSON

	// The phases of the answer. Once set, each stays set.
	started  bool // the opening bracket of the array was written
	wrote    bool // a part was written or passed
	finished bool // Pass has passed a finish reason on
	over     bool // the end was written

	// What the finish reason depends on:
	refused bool // a refusal was written
	broken  bool // a call could not be expressed on this wire

	signature string           // signature of the next part
	calls     map[int]*outCall // calls that are not yet written, by index
	next      int              // index of the first of them

	// Only for an answer that is not streamed: the last text, which is not written until it is known whether more text follows.
	open   lathe.DeltaKind // DeltaText, DeltaReasoning, or 0 for none
	text   strings.Builder
	signed string // signature of that text
}

var _ wire.Writer = (*Writer)(nil)

// An outCall is a call, as far as it was received.
type outCall struct {
	id, name, signature string
	args                []byte
	ended, cut          bool
}

// NewWriter implements [wire.Served].
func (c Codec) NewWriter(head *wire.AnswerHead) wire.Writer {
	req := head.Request
	return &Writer{array: c.Array && !head.Whole, whole: head.Whole, req: req, run: head.ID, tail: appendNames(nil, head.Model, head.ID),
		hideThoughts: req != nil && req.Sampling.ReasoningSummary == "", calls: map[int]*outCall{}}
}

func appendNames(dst wire.JSON, model, id string) wire.JSON {
	return dst.Str("modelVersion", model).Str("responseId", id)
}

// AppendStart implements [wire.Writer]. It appends the opening bracket of an array; server-sent events have no start on this wire.
func (w *Writer) AppendStart(dst []byte) []byte {
	if w.array && !w.started && !w.over {
		w.started = true
		dst = wire.JSON(dst).Lit("[\n")
	}
	return dst
}

// write sets out to dst, calls add, which appends to out, and returns out.
func (w *Writer) write(dst []byte, add func()) []byte {
	w.out = dst
	add()
	return w.out
}

// frame appends the bytes that precede an object of the stream.
func (w *Writer) frame() {
	switch {
	case !w.array:
		w.out = w.out.Lit("data: ")
		return
	case w.wrote:
		w.out = w.out.Lit(",\n")
	case !w.started:
		w.out = w.out.Lit("[\n")
	}
	w.started = true
}

// endFrame appends the bytes that follow an object of the stream.
func (w *Writer) endFrame() {
	w.wrote = true
	w.out = w.out.If(!w.whole, "\n").If(!w.whole && !w.array, "\n")
}

const (
	chunkHead = `{"candidates":[{"content":{"role":"model","parts":[`
	chunkTail = `]},"index":0}]`
)

// chunk writes a chunk with a part or, if the answer is not streamed, only the part.
func (w *Writer) chunk(part wire.JSON) {
	if w.whole {
		w.closeText()
		w.appendWhole(part)
		return
	}
	w.frame()
	w.out = w.out.Lit(chunkHead).Raw(part).Lit(chunkTail).Raw(w.tail).Lit("}")
	w.endFrame()
}

// appendWhole appends a part of an answer that is not streamed, and the beginning of the answer before its first part.
func (w *Writer) appendWhole(part wire.JSON) {
	w.out = w.out.If(!w.wrote, chunkHead).If(w.wrote, ",").Raw(part)
	w.wrote = true
}

// closeText appends the text that is not yet written.
func (w *Writer) closeText() {
	if w.open == 0 {
		return
	}
	part := textValue(w.text.String(), w.open == lathe.DeltaReasoning, w.signed)
	w.open, w.signed = 0, ""
	w.text.Reset()
	w.appendWhole(part)
}

// addText appends a piece of text or of a thought. In an answer that is not streamed, pieces of one kind are joined.
func (w *Writer) addText(kind lathe.DeltaKind, text string) {
	thought := kind == lathe.DeltaReasoning
	isUnsigned := w.signed == "" && (thought || w.signature == "") // neither the open text nor this one has a signature
	if w.whole && w.open == kind && isUnsigned {
		w.text.WriteString(text)
		return
	}
	signature := ""
	if !thought {
		signature = w.takeSignature()
	}
	if w.whole {
		w.closeText()
		w.open, w.signed = kind, signature
		w.text.WriteString(text)
		return
	}
	w.chunk(textValue(text, thought, signature))
}

// takeSignature returns the signature for the next part and clears it.
func (w *Writer) takeSignature() string {
	s := w.signature
	w.signature = ""
	return s
}

// AppendDelta implements [wire.Writer].
func (w *Writer) AppendDelta(dst []byte, d lathe.Delta) []byte {
	if w.over || w.finished {
		return dst
	}
	if d.Kind == lathe.DeltaFinish {
		return w.AppendFinish(dst, d.Finish, nil)
	}
	return w.write(dst, func() { w.delta(&d) })
}

func (w *Writer) delta(d *lathe.Delta) {
	switch d.Kind {
	case lathe.DeltaText, lathe.DeltaCommentary, lathe.DeltaRefusal:
		if d.Text == "" {
			return
		}
		w.refused = w.refused || d.Kind == lathe.DeltaRefusal
		w.addText(lathe.DeltaText, d.Text)
	case lathe.DeltaReasoning:
		if d.Text != "" && !w.hideThoughts {
			w.addText(lathe.DeltaReasoning, d.Text)
		}
	case lathe.DeltaPart:
		if part := partValue(d, w.takeSignature); part != nil {
			w.chunk(part)
		}
	case lathe.DeltaReasoningData:
		switch {
		case d.Name == fieldSignature:
			w.addSignature(d.Text)
		case d.Name == fieldThought && !w.hideThoughts:
			w.chunk(textValue("", true, d.Text))
		}
	case lathe.DeltaCallStart, lathe.DeltaCallArgs, lathe.DeltaCallEnd:
		if c := w.call(d.Index); c != nil {
			w.callDelta(c, d)
		}
	}
}

// callDelta records a delta of a call, and writes all calls that can be written when the call ends.
func (w *Writer) callDelta(c *outCall, d *lathe.Delta) {
	switch d.Kind {
	case lathe.DeltaCallStart:
		c.id, c.name, c.signature = d.ID, d.Name, w.takeSignature()
	case lathe.DeltaCallArgs:
		c.args = append(c.args, d.Text...)
	default:
		c.ended, c.cut, c.id = true, d.Incomplete, cmp.Or(d.ID, c.id)
		w.advance()
	}
}

// addSignature stores the signature of the next part. If a signature is already stored, it appends an empty part with that one.
func (w *Writer) addSignature(signature string) {
	if before := w.takeSignature(); before != "" {
		w.chunk(textValue("", false, before))
	}
	w.signature = signature
}

// textValue returns a part with text.
func textValue(text string, thought bool, signature string) wire.JSON {
	dst := wire.JSON(`{"text":`).Quote(text).If(thought, `,"thought":true`)
	return dst.OptStr(fieldSignature, signature).Lit("}")
}

// call returns the call with an index, or nil if it has been written. It creates the call at its first delta.
func (w *Writer) call(index int) *outCall {
	if index < w.next {
		return nil
	}
	c := w.calls[index]
	if c == nil {
		c = &outCall{}
		w.calls[index] = c
	}
	return c
}

// advance writes the calls that are complete, up to the first incomplete one.
func (w *Writer) advance() {
	for {
		c := w.calls[w.next]
		if c == nil || !c.ended || c.name == "" {
			return
		}
		if args := w.arguments(c); args != nil {
			w.chunk(callValue(w, w.next, c, args))
		}
		delete(w.calls, w.next)
		w.next++
	}
}

// arguments returns the arguments of a call, or nil if it is not written. A truncated call is never written. A call whose arguments are not
// an object cannot be expressed on the wire: it sets broken, and the finish reason is then that of a malformed call.
func (w *Writer) arguments(c *outCall) []byte {
	if c.cut {
		return nil
	}
	args, same, _ := wire.SentArguments(string(c.args))
	if !same {
		w.broken = true
		return nil
	}
	return args
}

// callValue returns a part with a call.
func callValue(w *Writer, index int, c *outCall, args []byte) wire.JSON {
	id := cmp.Or(c.id, madeID(w.run, index, c.name))
	dst := appendCallMembers(wire.JSON(`{"functionCall":{`), id, w.req.ClientName(c.name), compact(args))
	return dst.Lit("}").OptStr(fieldSignature, c.signature).Lit("}")
}

// AppendCarrier implements [wire.Writer]. The sealed text becomes the signature of the next text or call.
func (w *Writer) AppendCarrier(dst []byte, seal string) []byte {
	if w.over || w.finished {
		return dst
	}
	return w.write(dst, func() { w.addSignature(sealed(seal)) })
}

// AppendFinish implements [wire.Writer].
func (w *Writer) AppendFinish(dst []byte, f *lathe.Finish, extra []lathe.Member) []byte {
	if f == nil || w.over {
		return dst
	}
	if w.finished { // the server's own end was passed
		return w.end(dst)
	}
	for i, call := range f.Message.Calls() {
		if c := w.call(i); c != nil {
			c.id, c.name, c.args = cmp.Or(call.ID, c.id), call.Name, []byte(call.Arguments)
			c.ended, c.cut = true, call.Incomplete
		}
	}
	return w.end(w.write(dst, func() { w.appendLast(f, extra) }))
}

// appendLast appends the last chunk, or the end of an answer that is not streamed.
func (w *Writer) appendLast(f *lathe.Finish, extra []lathe.Member) {
	w.closeText()
	if !w.whole {
		w.frame()
	}
	isBlocked := !w.wrote && w.signature == "" && blocked(f) // such an answer has no candidate
	if isBlocked {
		w.out = appendEnd(appendBlocked(w.out, f), w.tail, f, extra)
		w.endFrame()
		return
	}
	w.out = w.out.If(!w.whole, chunkHead)
	for _, part := range w.lastParts(f) {
		if w.whole {
			w.appendWhole(part)
		} else {
			w.out = w.out.Next().Raw(part)
		}
	}
	end := w.out.Lit(`]},"finishReason":"`).Lit(reasonWord(f, w.refused, w.broken)).Lit(`","index":0}]`)
	w.out = appendEnd(end, w.tail, f, extra)
	w.endFrame()
}

// lastParts returns the parts of the last chunk: the calls that are not yet written, and an empty text if a signature is left or if the
// chunk, or the answer that is not streamed, would have no part.
func (w *Writer) lastParts(f *lathe.Finish) (parts []wire.JSON) {
	for i := range f.Message.Calls() {
		c := w.calls[i]
		if c == nil || i < w.next {
			continue
		}
		if args := w.arguments(c); args != nil {
			if c.signature == "" {
				c.signature = w.takeSignature()
			}
			parts = append(parts, callValue(w, i, c, args))
		}
	}
	signature := w.takeSignature()
	hasPart := len(parts) > 0 || w.whole && w.wrote
	if signature != "" || !hasPart {
		parts = append(parts, textValue("", false, signature))
	}
	return parts
}

// appendEnd appends the members that follow the candidates in the last object of an answer.
func appendEnd(dst wire.JSON, names []byte, f *lathe.Finish, extra []lathe.Member) wire.JSON {
	dst = appendUsage(dst.Lit(`,"usageMetadata":`), &f.Usage)
	return dst.Raw(names).Extra(extra, answerNames.Has).Lit("}")
}

// answerNames are the members of an answer that additional members must not replace.
var answerNames = rawjson.NewNames("candidates", "promptFeedback", "usageMetadata", "modelVersion", "responseId", "error")

// end marks the stream as ended, and appends the closing bracket of an array.
func (w *Writer) end(dst wire.JSON) wire.JSON {
	w.over = true
	return dst.If(w.array, "]\n")
}

// AppendError implements [wire.Writer].
func (w *Writer) AppendError(dst []byte, e *wire.APIError) []byte {
	if w.over {
		return dst
	}
	return w.end(w.write(dst, func() {
		if !w.finished {
			w.frame()
			w.out = Codec{}.AppendError(w.out, e)
			w.endFrame()
		}
	}))
}

// AppendKeepAlive implements [wire.Writer]. It appends white space in both forms, since Google's Go client reports a comment in an event
// stream as an error.
func (w *Writer) AppendKeepAlive(dst []byte) []byte {
	if w.over {
		return dst
	}
	return wire.JSON(dst).Lit("\n\n")
}

// Pass implements [wire.Writer]. raw is an event of a stream of server-sent events.
func (w *Writer) Pass(raw *lathe.Raw) []byte {
	if raw.ID != "" {
		w.tail = appendNames(nil, raw.Model, raw.ID)
	}
	w.wrote, w.started = true, true
	for _, d := range raw.Deltas {
		if d.Kind == lathe.DeltaCallEnd && d.Index >= w.next {
			w.next = d.Index + 1
		}
	}
	w.finished = w.finished || raw.Finished
	return raw.Bytes
}
