package openai

import (
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

// A ChunkWriter is the [wire.Writer] of chat completions, which do not show calls of this server. It writes the chunks of a stream in the
// form that OpenAI's own clients require: the role is first and in a chunk without content, each piece of a call has the index, the id and
// the name are sent once, a call is complete before the next one begins, a complete call without arguments has the arguments {}, and the
// finish reason is in a chunk without content. What cannot be sent yet (a call while another is open, a call without id or name) is
// buffered. If the client requested the usage, it follows in a separate chunk, and every other chunk has "usage":null.
type ChunkWriter struct {
	wire.PlainWriter

	// AnyName is set if names of calls are written unchanged even if the wire does not allow them.
	AnyName bool

	// Set by NewWriter:
	created      int64
	includeUsage bool  // the client requested the usage
	padded       bool  // frames are padded: see close
	fold         *fold // for an answer that is not streamed: nothing is written before its end; else nil

	head, tail []byte // start and end of every frame, around the delta; set by setNames
	started    bool   // the role was sent
	length     int    // number of characters of the content so far

	// The calls: advance sends them one after the other.
	calls []*outCall
	open  *outCall // the call that is being sent
	begun int      // number of calls begun on the wire

	// What Pass has passed on of another server's stream:
	passedID     string // id of the last chunk; "": none
	passedFinish bool
	passedUsage  bool
	scratch      []byte // buffer for the frames of its deltas, which are not sent
}

// An outCall is a call, as far as it was received. Its deltas set id, name, args, ended and cut; sending it sets began, argsSent and closed,
// in this order.
type outCall struct {
	index    int // index of the call within the turn
	id, name string
	args     []byte // arguments not yet sent
	ended    bool   // nothing more is received
	cut      bool   // truncated by an output limit

	began    bool // its first frame was sent
	argsSent bool // a piece of its arguments was sent
	closed   bool // completely sent
}

// NewWriter implements [wire.Served].
func (Served) NewWriter(head *wire.AnswerHead) wire.Writer {
	w := &ChunkWriter{created: head.Created}
	if head.Whole {
		w.fold = &fold{head: head}
		return w
	}
	if head.Request != nil {
		w.includeUsage, w.padded = head.Request.IncludeUsage, head.Request.Obfuscate
	}
	w.setNames(completionID(head), head.Model)
	return w
}

// setNames sets the id and the model of the frames that follow.
func (w *ChunkWriter) setNames(id, model string) {
	head := make(wire.JSON, 0, 160+len(id)+len(model)).Lit(`data: {"id":`).Quote(id).Lit(`,"object":"chat.completion.chunk","created":`).Int(w.created).
		Str("model", model)
	w.head, w.tail = head.Lit(`,"choices":[{"index":0,"delta":`), []byte(w.end("null"))
}

// end returns the end of a frame after its delta. finish is the encoded finish reason.
func (w *ChunkWriter) end(finish string) string {
	s := `,"logprobs":null,"finish_reason":` + finish + `}]`
	if w.includeUsage {
		s += `,"usage":null`
	}
	return s + "}\n\n"
}

// AppendStart implements [wire.Writer]. It appends the frame with the role.
func (w *ChunkWriter) AppendStart(dst []byte) []byte {
	return w.start(dst, `""`)
}

func (w *ChunkWriter) start(dst wire.JSON, content string) wire.JSON {
	if w.started || w.fold != nil {
		return dst
	}
	w.started = true
	return dst.Raw(w.head).Lit(`{"role":"assistant","content":`).Lit(content).Lit("}").Raw(w.tail)
}

// AppendDelta implements [wire.Writer]. A delta of kind DeltaFinish ends the answer.
func (w *ChunkWriter) AppendDelta(dst []byte, d lathe.Delta) []byte {
	switch d.Kind {
	case lathe.DeltaText, lathe.DeltaCommentary:
		w.length += utf8.RuneCountInString(d.Text)
		return w.text(dst, "content", d.Text)
	case lathe.DeltaReasoning:
		return w.text(dst, defaultReasoningField, d.Text)
	case lathe.DeltaRefusal:
		return w.text(dst, "refusal", d.Text)
	case lathe.DeltaTextEnd:
		return w.cite(dst, &d)
	case lathe.DeltaCallStart:
		c := w.call(d.Index)
		if c.id, c.name = d.ID, d.Name; c.name != "" && !w.AnyName {
			c.name = callName(c.name)
		}
		return w.advance(dst)
	case lathe.DeltaCallArgs:
		c := w.call(d.Index)
		if c == w.open && c.began {
			if d.Text != "" {
				dst = w.args(dst, c, d.Text)
			}
			return dst
		}
		c.args = append(c.args, d.Text...)
		return w.advance(dst)
	case lathe.DeltaCallEnd:
		c := w.call(d.Index)
		c.ended, c.cut = true, d.Incomplete
		return w.advance(dst)
	case lathe.DeltaFinish:
		return w.AppendFinish(dst, d.Finish, nil)
	}
	return dst
}

// close appends the end of a frame whose delta began at index from. If frames are padded, it adds a member `obfuscation`, so that the size
// of a frame does not reveal its content. Frames with texts of up to 64 encoded bytes have the same size, those of up to 128 bytes the next
// size, and so on.
func (w *ChunkWriter) close(dst wire.JSON, from int) wire.JSON {
	size := len(dst) - from
	dst = dst.Raw(w.tail)
	if !w.padded {
		return dst
	}
	return dst[:len(dst)-len("}\n\n")].Lit(`,"obfuscation":"`).Lit(wire.Padding(size)).Lit("\"}\n\n")
}

// text appends a frame with a piece of the text in a member of the message.
func (w *ChunkWriter) text(dst wire.JSON, member, text string) wire.JSON {
	if text == "" {
		return dst
	}
	if w.fold != nil {
		w.fold.text(member).WriteString(text)
		return dst
	}
	dst = wire.JSON(w.AppendStart(dst)).Raw(w.head).Lit(`{"`).Lit(member).Lit(`":`)
	from := len(dst)
	dst = dst.Quote(text).Lit("}")
	return w.close(dst, from)
}

// cite appends a frame with the sources of the text that has ended.
func (w *ChunkWriter) cite(dst wire.JSON, d *lathe.Delta) wire.JSON {
	t, _ := d.Part.(lathe.Text)
	list := wire.Citations(d, lathe.WireOpenAIChat, max(0, w.length-utf8.RuneCountInString(t.Text)))
	if len(list) == 0 {
		return dst
	}
	if w.fold != nil {
		w.fold.annotations = append(w.fold.annotations, list...)
		return dst
	}
	return wire.JSON(w.AppendStart(dst)).Raw(w.head).Raw(wire.ObjectOf("annotations", wire.ArrayOf(list...))).Raw(w.tail)
}

// call returns the call with an index, and adds it if necessary.
func (w *ChunkWriter) call(index int) *outCall {
	if w.open != nil && w.open.index == index {
		return w.open
	}
	for _, c := range w.calls {
		if c.index == index {
			return c
		}
	}
	c := &outCall{index: index}
	w.calls = append(w.calls, c)
	return c
}

// advance sends all that can be sent of the calls, in their order.
func (w *ChunkWriter) advance(dst wire.JSON) wire.JSON {
	for {
		if w.open == nil {
			if i := slices.IndexFunc(w.calls, func(c *outCall) bool { return !c.closed }); i >= 0 {
				w.open = w.calls[i]
			}
		}
		c := w.open
		if c == nil || c.id == "" || c.name == "" {
			return dst
		}
		if !c.began {
			dst = w.begin(dst, c)
		}
		if len(c.args) > 0 {
			dst = w.args(dst, c, string(c.args))
			c.args = nil
		}
		if !c.ended {
			return dst
		}
		if !c.argsSent && !c.cut {
			dst = w.args(dst, c, "{}")
		}
		c.closed, w.open = true, nil
		if w.fold != nil {
			w.fold.endCall()
		}
	}
}

// begin appends the first frame of a call, with its id and name.
func (w *ChunkWriter) begin(dst wire.JSON, c *outCall) wire.JSON {
	c.began = true
	w.begun++
	if w.fold != nil {
		w.fold.calls = append(w.fold.calls, lathe.ToolCall{ID: c.id, Name: c.name, Incomplete: true}) // keeps the arguments as written
		return dst
	}
	return w.start(dst, "null").Raw(w.head).Lit(`{"tool_calls":[{"index":`).Int(int64(w.begun-1)).Str("id", c.id).
		Lit(`,"type":"function","function":{"name":`).Quote(c.name).Lit(`,"arguments":""}}]}`).Raw(w.tail)
}

// args appends a frame with a piece of the arguments of c, which is the call that was begun last.
func (w *ChunkWriter) args(dst wire.JSON, c *outCall, text string) wire.JSON {
	c.argsSent = true
	if w.fold != nil {
		w.fold.args = append(w.fold.args, text...)
		return dst
	}
	dst = dst.Raw(w.head).Lit(`{"tool_calls":[{"index":`).Int(int64(w.begun - 1)).Lit(`,"function":{"arguments":`)
	from := len(dst)
	dst = dst.Quote(text)
	return w.close(dst.Lit("}}]}"), from)
}

// AppendFinish implements [wire.Writer]. The members of extra are added to the last frame before [DONE].
func (w *ChunkWriter) AppendFinish(to []byte, f *lathe.Finish, extra []lathe.Member) []byte {
	dst := wire.JSON(to)
	switch {
	case w.fold != nil && f == nil:
		return dst
	case f == nil:
		return dst.Lit(endOfStream)
	}
	w.completeCalls(f.Message.Calls())
	if w.fold != nil {
		w.advance(nil)
		return w.fold.append(dst, f, extra)
	}
	dst = w.AppendStart(dst)
	before := len(dst)
	if !w.passedFinish {
		dst = w.advance(dst).Raw(w.head).Lit("{}").Lit(w.end(`"` + wireReason(f.Reason) + `"`))
	}
	if w.includeUsage && !w.passedUsage {
		i := len(w.head) - len(`[{"index":0,"delta":`) // this frame has no choice
		dst = dst.Raw(w.head[:i]).Lit(`[],"usage":`)
		dst = appendUsage(dst, &f.Usage, f.ProviderCost).Lit("}\n\n")
	}
	if len(extra) > 0 && len(dst) > before {
		dst = dst[:len(dst)-len("}\n\n")].Extra(extra, knownInCompletion).Lit("}\n\n")
	}
	return dst.Lit(endOfStream)
}

// completeCalls ends the calls of an answer, and sets those of which no frame was sent to what the answer has. Empty calls are ignored.
func (w *ChunkWriter) completeCalls(calls []lathe.ToolCall) {
	for i, call := range calls {
		c := w.call(i)
		isEmpty := call.ID == "" && call.Name == "" && call.Arguments == ""
		if c.closed || isEmpty {
			continue
		}
		if !c.began {
			c.id, c.name, c.args = call.ID, callName(call.Name), []byte(call.Arguments)
			if c.id == "" {
				c.id = "call_" + strconv.Itoa(i+1)
			}
		}
		c.ended, c.cut = true, call.Incomplete
	}
}

// endOfStream is the frame that ends the stream.
const endOfStream = "data: [DONE]\n\n"

// AppendError implements [wire.Writer].
func (*ChunkWriter) AppendError(dst []byte, e *wire.APIError) []byte {
	return wire.JSON(AppendError(wire.JSON(dst).Lit("data: "), e)).Lit("\n\n")
}

// AppendKeepAlive implements [wire.Writer].
func (*ChunkWriter) AppendKeepAlive(dst []byte) []byte {
	return wire.JSON(dst).Lit(": keep-alive\n\n")
}

// Pass implements [wire.Writer]. Frames that follow have the id and model of the passed ones, because some clients refuse chunks with
// another id.
func (w *ChunkWriter) Pass(raw *lathe.Raw) []byte {
	for _, d := range raw.Deltas {
		switch d.Kind {
		case lathe.DeltaText, lathe.DeltaCommentary:
			w.started = true
			w.length += utf8.RuneCountInString(d.Text)
		case lathe.DeltaReasoning, lathe.DeltaRefusal:
			w.started = true
		default:
			w.scratch = w.AppendDelta(w.scratch[:0], d)
		}
	}
	w.passedFinish, w.passedUsage = w.passedFinish || raw.Finished, w.passedUsage || raw.UsageOnly
	if raw.ID != "" && raw.ID != w.passedID {
		w.passedID = raw.ID
		w.setNames(raw.ID, raw.Model)
	}
	return raw.Bytes
}

// wireReason returns the finish_reason of the wire.
func wireReason(r lathe.FinishReason) string {
	switch r {
	case lathe.FinishToolCalls, lathe.FinishLength, lathe.FinishContentFilter:
		return string(r)
	default:
		return string(lathe.FinishStop)
	}
}
