package uistream

import (
	"strconv"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// A State is the state of a page of assistant-ui's transport: an object whose member
// `messages` has UI messages, and whose other members belong to the page. The stream for such a page contains
// each change of the state, besides the parts of its message.
type State struct {
	count int              // of its messages
	into  int              // the message that the stream continues; -1: a new one
	parts int              // of that
	calls map[string]place // where its calls are
	ops   [][]byte         // what the request itself changed
	run   string           // of the last message, if a page requests its stream again
}

// A place identifies a part.
type place struct{ message, part int }

// appendOp appends an operation on the state, without its closing brace.
func appendOp(dst []byte, typ string, path ...string) []byte {
	dst = append(str(append(dst, '{'), "type", typ), `,"path":[`...)
	for i, p := range path {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = rawjson.AppendQuote(dst, p)
	}
	return append(dst, ']')
}

func (s *State) set(value []byte, path ...string) {
	s.ops = append(s.ops, append(append(member(appendOp(nil, "set", path...), "value"), value...), '}'))
}

func (p place) path(name string) []string {
	path := []string{"messages", strconv.Itoa(p.message), "parts", strconv.Itoa(p.part)}
	if name != "" {
		path = append(path, name)
	}
	return path
}

// A stateWriter writes AssistantTransport for a page that holds a state.
type stateWriter struct {
	transportWriter
	state *State
	block place
}

// change appends a frame with one operation. value appends its value.
func (w *stateWriter) change(dst []byte, typ string, path []string, value func([]byte) []byte) []byte {
	dst = append(member(w.frame(dst, "update-state", -1), "operations"), '[')
	dst = value(member(appendOp(dst, typ, path...), "value"))
	return closeFrame(append(dst, "}]"...))
}

func (w *stateWriter) setText(dst []byte, path []string, text string) []byte {
	return w.change(dst, "set", path, func(dst []byte) []byte { return appendQuoted(dst, text) })
}

// next returns the place of the next part.
func (w *stateWriter) next() place {
	w.state.parts++
	return place{w.state.into, w.state.parts - 1}
}

func (w *stateWriter) begin(dst []byte, h *head) []byte {
	dst = w.transportWriter.begin(dst, h)
	s := w.state
	if s.run != "" && s.run == h.runID { // the stream starts at the beginning of the run
		s.count--
	}
	if s.into < 0 {
		s.into, s.parts = s.count, 0
		m := str(str([]byte{'{'}, "id", h.messageID), "role", "assistant")
		if h.runID != "" {
			m = append(str(append(member(m, "metadata"), '{'), "runId", h.runID), '}')
		}
		s.set(append(m, `,"parts":[]}`...), "messages", strconv.Itoa(s.into))
		s.count++
	}
	if len(s.ops) == 0 {
		return dst
	}
	dst = append(member(w.frame(dst, "update-state", -1), "operations"), '[')
	for i, op := range s.ops {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, op...)
	}
	s.ops = nil
	return closeFrame(append(dst, ']'))
}

func (w *stateWriter) stepStart(dst []byte, turn int) []byte {
	dst = w.transportWriter.stepStart(dst, turn)
	return w.change(dst, "set", w.next().path(""), func(dst []byte) []byte { return append(dst, `{"type":"step-start"}`...) })
}

func (w *stateWriter) blockStart(dst []byte, b block) []byte {
	dst = w.transportWriter.blockStart(dst, b)
	w.block = w.next()
	return w.change(dst, "set", w.block.path(""), func(dst []byte) []byte {
		return append(str(str(append(dst, '{'), "type", b.part()), "text", ""), '}')
	})
}

func (w *stateWriter) blockDelta(dst []byte, b block, s string) []byte {
	dst = w.transportWriter.blockDelta(dst, b, s)
	return w.change(dst, "append-text", w.block.path("text"), func(dst []byte) []byte { return appendQuoted(dst, s) })
}

// of returns the place of a call.
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

func (w *stateWriter) callStart(dst []byte, c *call) []byte {
	dst = w.transportWriter.callStart(dst, c)
	if c.carried {
		return dst // its part exists
	}
	return w.change(dst, "set", w.of(c).path(""), func(dst []byte) []byte {
		dst = str(str(append(dst, '{'), "type", "dynamic-tool"), "toolName", c.name)
		dst = str(str(dst, "toolCallId", c.shown), "state", "input-streaming")
		return append(dst, `,"argsText":"","input":null}`...)
	})
}

func (w *stateWriter) callArgs(dst []byte, c *call, s string) []byte {
	dst = w.transportWriter.callArgs(dst, c, s)
	if c.carried {
		return dst
	}
	return w.change(dst, "append-text", w.of(c).path("argsText"), func(dst []byte) []byte { return appendQuoted(dst, s) })
}

func (w *stateWriter) callReady(dst []byte, c *call) []byte {
	dst = w.transportWriter.callReady(dst, c)
	if c.carried {
		return dst
	}
	dst = w.change(dst, "set", w.of(c).path("input"), func(dst []byte) []byte { return appendInput(dst, c.args) })
	return w.setText(dst, w.of(c).path("state"), "input-available")
}

func (w *stateWriter) callBroken(dst []byte, c *call) []byte { return w.callReady(dst, c) }

func (w *stateWriter) approval(dst []byte, c *call) []byte {
	dst = w.transportWriter.approval(dst, c)
	dst = w.change(dst, "set", w.of(c).path("approval"), func(dst []byte) []byte { return append(str(append(dst, '{'), "id", c.approval), '}') })
	return w.setText(dst, w.of(c).path("state"), "approval-requested")
}

func (w *stateWriter) result(dst []byte, c *call, o *outcome) []byte {
	dst = w.transportWriter.result(dst, c, o)
	if o.failed {
		dst = w.setText(dst, w.of(c).path("errorText"), errorText(o))
		return w.setText(dst, w.of(c).path("state"), "output-error")
	}
	dst = w.change(dst, "set", w.of(c).path("output"), func(dst []byte) []byte { return appendOutput(dst, o.content) })
	return w.setText(dst, w.of(c).path("state"), "output-available")
}

func (w *stateWriter) file(dst []byte, mediaType, url string) []byte {
	dst = w.transportWriter.file(dst, mediaType, url)
	return w.change(dst, "set", w.next().path(""), func(dst []byte) []byte {
		return append(str(str(str(append(dst, '{'), "type", "file"), "mediaType", mediaType), "url", url), '}')
	})
}
