package uistream

import (
	"strconv"

	"github.com/lathe-run/lathe/internal/wire"
)

// A State is the state of a page of assistant-ui's transport: an object whose member `messages` contains UI messages; its other members
// belong to the page. The stream for such a page contains each change of the state in addition to the parts of its message.
type State struct {
	count int              // number of messages
	into  int              // index of the message that the stream continues; -1: a new one
	parts int              // number of parts of that message
	calls map[string]place // places of the calls, by id
	ops   [][]byte         // operations for the changes that the request made
	run   string           // run of the last message, if the page requests its stream again
}

// A place is the position of a part in a state.
type place struct{ message, part int }

// appendOp appends an operation on the state, without its closing brace.
func appendOp(dst wire.JSON, typ string, path ...string) wire.JSON {
	dst = dst.Lit("{").Str("type", typ).Lit(`,"path":[`)
	for i, p := range path {
		dst = dst.If(i > 0, ",").Quote(p)
	}
	return dst.Lit("]")
}

func (s *State) set(value []byte, path ...string) {
	s.ops = append(s.ops, appendOp(nil, "set", path...).Val("value", value).Lit("}"))
}

func (p place) path(name string) []string {
	path := []string{"messages", strconv.Itoa(p.message), "parts", strconv.Itoa(p.part)}
	if name != "" {
		path = append(path, name)
	}
	return path
}

// A stateWriter writes AssistantTransport for a page with a state.
type stateWriter struct {
	transportWriter
	state *State
	block place
}

// change appends a frame with one operation on the state, whose value the function value appends.
func (w *stateWriter) change(dst wire.JSON, typ string, path []string, value func(wire.JSON) wire.JSON) wire.JSON {
	dst = w.frame(dst, "update-state", -1).Arr("operations")
	dst = value(appendOp(dst, typ, path...).Key("value"))
	return dst.Lit("}]").EndEvent()
}

func (w *stateWriter) setText(dst wire.JSON, path []string, text string) wire.JSON {
	return w.change(dst, "set", path, func(dst wire.JSON) wire.JSON { return dst.Quote(text) })
}

// next reserves and returns the place of the next part.
func (w *stateWriter) next() place {
	w.state.parts++
	return place{w.state.into, w.state.parts - 1}
}

func (w *stateWriter) begin(dst wire.JSON, h *head) wire.JSON {
	dst = w.transportWriter.begin(dst, h)
	s := w.state
	if s.run != "" && s.run == h.runID { // the stream repeats the run from its beginning
		s.count--
	}
	if s.into < 0 {
		s.into, s.parts = s.count, 0
		m := wire.JSON("{").Str("id", h.messageID).Str("role", "assistant")
		if h.runID != "" {
			m = m.Obj("metadata").Str("runId", h.runID).Lit("}")
		}
		s.set(m.Lit(`,"parts":[]}`), "messages", strconv.Itoa(s.into))
		s.count++
	}
	if len(s.ops) == 0 {
		return dst
	}
	dst = w.frame(dst, "update-state", -1).Arr("operations")
	for i, op := range s.ops {
		dst = dst.If(i > 0, ",").Raw(op)
	}
	s.ops = nil
	return dst.Lit("]").EndEvent()
}

func (w *stateWriter) stepStart(dst wire.JSON, turn int) wire.JSON {
	dst = w.transportWriter.stepStart(dst, turn)
	return w.change(dst, "set", w.next().path(""), func(dst wire.JSON) wire.JSON { return dst.Lit(`{"type":"step-start"}`) })
}

func (w *stateWriter) blockStart(dst wire.JSON, b block) wire.JSON {
	dst = w.transportWriter.blockStart(dst, b)
	w.block = w.next()
	return w.change(dst, "set", w.block.path(""), func(dst wire.JSON) wire.JSON {
		return dst.Lit("{").Str("type", b.part()).Str("text", "").Lit("}")
	})
}

func (w *stateWriter) blockDelta(dst wire.JSON, b block, s string) wire.JSON {
	dst = w.transportWriter.blockDelta(dst, b, s)
	return w.change(dst, "append-text", w.block.path("text"), func(dst wire.JSON) wire.JSON { return dst.Quote(s) })
}

// of returns the place of a call, and reserves one for a new call.
func (w *stateWriter) of(c *call) place {
	if at, ok := w.state.calls[c.shown]; ok {
		return at
	}
	at := w.next()
	if w.state.calls == nil {
		w.state.calls = map[string]place{}
	}
	w.state.calls[c.shown] = at
	return at
}

func (w *stateWriter) callStart(dst wire.JSON, c *call) wire.JSON {
	dst = w.transportWriter.callStart(dst, c)
	if c.carried {
		return dst // an earlier stream has written its part
	}
	return w.change(dst, "set", w.of(c).path(""), func(dst wire.JSON) wire.JSON {
		return dst.Lit("{").Str("type", "dynamic-tool").Str("toolName", c.name).Str("toolCallId", c.shown).Str("state", "input-streaming").
			Lit(`,"argsText":"","input":null}`)
	})
}

func (w *stateWriter) callArgs(dst wire.JSON, c *call, s string) wire.JSON {
	dst = w.transportWriter.callArgs(dst, c, s)
	if c.carried {
		return dst
	}
	return w.change(dst, "append-text", w.of(c).path("argsText"), func(dst wire.JSON) wire.JSON { return dst.Quote(s) })
}

func (w *stateWriter) callReady(dst wire.JSON, c *call) wire.JSON {
	dst = w.transportWriter.callReady(dst, c)
	if c.carried {
		return dst
	}
	dst = w.change(dst, "set", w.of(c).path("input"), func(dst wire.JSON) wire.JSON { return appendInput(dst, c.args) })
	return w.setText(dst, w.of(c).path("state"), "input-available")
}

func (w *stateWriter) callBroken(dst wire.JSON, c *call) wire.JSON { return w.callReady(dst, c) }

func (w *stateWriter) approval(dst wire.JSON, c *call) wire.JSON {
	dst = w.transportWriter.approval(dst, c)
	dst = w.change(dst, "set", w.of(c).path("approval"), func(dst wire.JSON) wire.JSON { return dst.Lit("{").Str("id", c.approval).Lit("}") })
	return w.setText(dst, w.of(c).path("state"), "approval-requested")
}

func (w *stateWriter) result(dst wire.JSON, c *call, o *outcome) wire.JSON {
	dst = w.transportWriter.result(dst, c, o)
	if o.failed {
		dst = w.setText(dst, w.of(c).path("errorText"), errorText(o))
		return w.setText(dst, w.of(c).path("state"), "output-error")
	}
	dst = w.change(dst, "set", w.of(c).path("output"), func(dst wire.JSON) wire.JSON { return appendOutput(dst, o.content) })
	return w.setText(dst, w.of(c).path("state"), "output-available")
}

func (w *stateWriter) file(dst wire.JSON, mediaType, url string) wire.JSON {
	dst = w.transportWriter.file(dst, mediaType, url)
	return w.change(dst, "set", w.next().path(""), func(dst wire.JSON) wire.JSON {
		return dst.Lit("{").Str("type", "file").Str("mediaType", mediaType).Str("url", url).Lit("}")
	})
}
