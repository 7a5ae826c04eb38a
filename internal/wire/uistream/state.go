package uistream

import (
	"github.com/lathe-run/lathe/internal/wire"
)

// A State is the state of a page of assistant-ui's transport: an object whose member `messages` contains UI messages; its other members
// belong to the page. The stream for such a page contains each change of the state in addition to the parts of its message.
//
// The parser sets all fields. A stateWriter changes a copy, as the page changes its state: begin sends the operations and appends the message
// of the stream, unless it continues one, and next counts its parts.
type State struct {
	count int              // number of messages
	into  int              // index of the message that the stream continues; -1: a new one
	parts int              // number of parts of the last message
	calls map[string]place // places of the calls, by id
	ops   []wire.JSON      // operations for the changes that the request made
	run   string           // run of the last message, if the page requests its stream again
}

// A place is the position of a part in a state.
type place struct{ message, part int }

// operation returns an operation on the state, such as {"type":"set","path":["messages","1","parts","0","text"],"value":"It is"}.
func operation(typ string, value wire.JSON, path ...string) wire.JSON {
	return wire.ObjectOf("type", typ, "path", path, "value", value)
}

// set adds an operation to those of the request.
func (s *State) set(value []byte, path ...string) {
	s.ops = append(s.ops, operation("set", value, path...))
}

// path returns the path of a member of the part, or that of the part if name is "".
func (p place) path(name string) []string {
	path := []string{"messages", itoa(p.message), "parts", itoa(p.part)}
	if name != "" {
		path = append(path, name)
	}
	return path
}

// A stateWriter writes AssistantTransport for a page with a state.
type stateWriter struct {
	transportWriter
	state *State
	block place // place of the open block
}

// change appends a frame with one operation on the state.
func (w *stateWriter) change(typ string, value wire.JSON, path ...string) {
	w.message("update-state", "operations", wire.ArrayOf(operation(typ, value, path...)))
}

func (w *stateWriter) set(value wire.JSON, path ...string) { w.change("set", value, path...) }

// next reserves and returns the place of the next part.
func (w *stateWriter) next() place {
	w.state.parts++
	return place{w.state.into, w.state.parts - 1}
}

func (w *stateWriter) begin(h *head) {
	w.transportWriter.begin(h)
	s := w.state
	if s.run != "" && s.run == h.runID {
		s.count-- // the stream repeats the run from its beginning, so its message replaces the last one
	}
	if s.into < 0 {
		s.into, s.parts = s.count, 0
		s.set(wire.ObjectOf("id", h.messageID, "role", "assistant", "metadata", runMetadata(h.runID, ""), "parts", wire.JSON("[]")), "messages", itoa(s.into))
		s.count++
	}
	if len(s.ops) > 0 {
		w.message("update-state", "operations", wire.ArrayOf(s.ops...))
		s.ops = nil
	}
}

func (w *stateWriter) stepStart(turn int) {
	w.transportWriter.stepStart(turn)
	w.set(wire.ObjectOf("type", "step-start"), w.next().path("")...)
}

func (w *stateWriter) blockStart(b block) {
	w.transportWriter.blockStart(b)
	w.block = w.next()
	w.set(wire.ObjectOf("type", b.part(), "text", ""), w.block.path("")...)
}

func (w *stateWriter) blockDelta(b block, s string) {
	w.transportWriter.blockDelta(b, s)
	w.change("append-text", wire.Quoted(s), w.block.path("text")...)
}

// placeOf returns the place of a call, and reserves one for a new call.
func (w *stateWriter) placeOf(c *call) place {
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

func (w *stateWriter) callStart(c *call) {
	w.transportWriter.callStart(c)
	if !c.carried {
		w.set(wire.ObjectOf("type", "dynamic-tool", "toolName", c.name, "toolCallId", c.shown, "state", "input-streaming",
			"argsText", "", "input", wire.JSON("null")), w.placeOf(c).path("")...)
	}
}

func (w *stateWriter) callArgs(c *call, s string) {
	w.transportWriter.callArgs(c, s)
	if !c.carried {
		w.change("append-text", wire.Quoted(s), w.placeOf(c).path("argsText")...)
	}
}

func (w *stateWriter) callReady(c *call) {
	w.transportWriter.callReady(c)
	if !c.carried {
		w.set(inputValue(c.args), w.placeOf(c).path("input")...)
		w.setState(c, "input-available")
	}
}

func (w *stateWriter) callBroken(c *call) { w.callReady(c) }

func (w *stateWriter) setState(c *call, state string) {
	w.set(wire.Quoted(state), w.placeOf(c).path("state")...)
}

func (w *stateWriter) approval(c *call) {
	w.transportWriter.approval(c)
	w.set(wire.ObjectOf("id", c.approval), w.placeOf(c).path("approval")...)
	w.setState(c, "approval-requested")
}

func (w *stateWriter) result(c *call, o *outcome) {
	w.transportWriter.result(c, o)
	if o.failed {
		w.set(wire.Quoted(errorText(o)), w.placeOf(c).path("errorText")...)
		w.setState(c, "output-error")
		return
	}
	w.set(outputValue(o.content), w.placeOf(c).path("output")...)
	w.setState(c, "output-available")
}

func (w *stateWriter) file(mediaType, url string) {
	w.transportWriter.file(mediaType, url)
	w.set(wire.ObjectOf("type", "file", "mediaType", mediaType, "url", url), w.next().path("")...)
}
