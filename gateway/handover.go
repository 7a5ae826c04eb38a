package gateway

import (
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire/openai"
)

// A handover tells the client the calls to its own tools as the model writes them, and of those of this
// server nothing. A call is told from its beginning once it is certain which tool it names, under which id,
// and that it will be handed over; others are told whole at the end.
type handover struct {
	chunks  *openai.ChunkWriter
	names   map[string]bool // of the client's tools
	early   bool            // calls are told before the end of their turn
	mends   bool            // arguments in a fence, or written as a JSON string, are unwrapped
	single  bool            // only the first call of a turn is handed over
	most    int             // calls of the run that are handed over
	planned int             // calls of earlier turns
	told    []*toldCall
}

// A toldCall is a call that was begun on the wire, where its index is its place among those.
type toldCall struct {
	id    string
	turn  int
	text  []byte // on the wire
	held  bool   // it does not begin as an object: it is sent once it is whole
	ended bool
}

// newHandover returns one for a run that hands over calls to these tools.
func newHandover(chunks *openai.ChunkWriter, tools []*lathe.ToolSpec, s *lathe.Settings, l *lathe.Limits) *handover {
	h := &handover{chunks: chunks, single: s.ParallelToolCalls != nil && !*s.ParallelToolCalls, most: l.WithDefaults().MaxToolCalls}
	h.early = s.OnParseError != lathe.ParseErrorRetryWithout // else a turn may be taken back
	h.mends = s.Repair != lathe.RepairOff
	if len(tools) > 0 {
		h.names = make(map[string]bool, len(tools))
	}
	for _, t := range tools {
		h.names[t.Name] = true
	}
	return h
}

func (h *handover) find(id string) int {
	return slices.IndexFunc(h.told, func(c *toldCall) bool { return c.id == id })
}

// appendPiece tells a piece of a call, if it is the client's.
func (h *handover) appendPiece(dst []byte, turn int, d *lathe.ToolCallDelta) []byte {
	if d.ToolCallID == "" || !h.early || !h.names[d.Tool] {
		return dst
	}
	k := h.find(d.ToolCallID)
	if k < 0 {
		if h.single && d.Index > 0 || h.planned+d.Index >= h.most {
			return dst
		}
		for i, c := range h.told { // a call is on the wire until it has ended
			if !c.ended && rawjson.Check(c.text, rawjson.Limits{}) == nil {
				dst = h.end(dst, i, false)
			}
		}
		k = len(h.told)
		h.told = append(h.told, &toldCall{id: d.ToolCallID, turn: turn})
		dst = h.chunks.AppendDelta(dst, lathe.Delta{Kind: lathe.DeltaCallStart, Index: k, ID: d.ToolCallID, Name: d.Tool})
	}
	c := h.told[k]
	if h.mends && !c.held && len(c.text) == 0 {
		begin := strings.TrimLeft(d.Text, " \t\r\n")
		c.held = begin != "" && begin[0] != '{'
		if begin == "" {
			return dst // sent with the rest
		}
	}
	if c.ended || c.held {
		return dst
	}
	return h.args(dst, k, d.Text)
}

// handed returns the call as the client gets it: with its arguments unwrapped, as those of a tool of this server are.
func (h *handover) handed(call lathe.ToolCall) lathe.ToolCall {
	if h.mends {
		call.Arguments = unwrapped(call.Arguments)
	}
	return call
}

// unwrapped returns the object in arguments that stand in a fence or are written as a JSON string; others as they are.
func unwrapped(arguments string) string {
	if inner, ok := rawjson.UnwrapObject([]byte(strings.TrimSpace(arguments))); ok {
		return string(inner)
	}
	return arguments
}

func (h *handover) args(dst []byte, k int, text string) []byte {
	if text == "" {
		return dst
	}
	h.told[k].text = append(h.told[k].text, text...)
	return h.chunks.AppendDelta(dst, lathe.Delta{Kind: lathe.DeltaCallArgs, Index: k, Text: text})
}

func (h *handover) end(dst []byte, k int, cut bool) []byte {
	h.told[k].ended = true
	return h.chunks.AppendDelta(dst, lathe.Delta{Kind: lathe.DeltaCallEnd, Index: k, Incomplete: cut})
}

// appendWhole tells what is left of the calls of a message that is whole now.
func (h *handover) appendWhole(dst []byte, m *lathe.Message) []byte {
	for _, call := range m.Calls() {
		if k := h.find(call.ID); k >= 0 && !h.told[k].ended {
			dst = h.rest(dst, k, &call)
		}
	}
	return dst
}

func (h *handover) rest(dst []byte, k int, call *lathe.ToolCall) []byte {
	whole := h.handed(*call).Arguments
	if len(h.told[k].text) > 0 {
		whole = call.Arguments // what is on the wire began as an object
	}
	if rest, ok := strings.CutPrefix(whole, string(h.told[k].text)); ok {
		dst = h.args(dst, k, rest)
	}
	return h.end(dst, k, call.Incomplete)
}

// appendAll tells the calls that are handed over and were not told yet.
func (h *handover) appendAll(dst []byte, calls []lathe.ToolCall) []byte {
	for k, c := range h.told {
		if !c.ended { // a model that did not tell its message whole
			dst = h.end(dst, k, true)
		}
	}
	for i := range calls {
		if h.find(calls[i].ID) >= 0 {
			continue
		}
		k := len(h.told)
		h.told = append(h.told, &toldCall{id: calls[i].ID})
		dst = h.chunks.AppendDelta(dst, lathe.Delta{Kind: lathe.DeltaCallStart, Index: k, ID: calls[i].ID, Name: openai.CallName(calls[i].Name)})
		dst = h.rest(dst, k, &calls[i])
	}
	return dst
}
