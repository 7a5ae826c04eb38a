package messages

import (
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// readSystem reads the member `system`, which is a string or an array of text blocks.
func (r *reader) readSystem(o wire.Object) []lathe.Message {
	if o.Get("system") == nil {
		return nil
	}
	m := lathe.Message{Role: lathe.RoleSystem, Wire: lathe.WireMessages}
	if len(r.readContent(o, "system", &m)) > 0 {
		o.Fail("system", "Results belong into the messages.")
	}
	if len(m.Parts) == 0 {
		return nil
	}
	return []lathe.Message{m}
}

// readMessages splits the turns into messages of the internal form.
func (r *reader) readMessages(o wire.Object) (out []lathe.Message) {
	var s step
	out = make([]lathe.Message, 0, r.MessageEstimate())
	for el := range o.Elements("messages") {
		m, results := r.readMessage(el)
		if m.Role == lathe.RoleAssistant && len(m.Parts) > 0 {
			out = appendMerged(s.flush(out), m)
			continue
		}
		if !s.add(results) {
			r.Fail("content", "A call has two results.")
		}
		if len(m.Parts) > 0 {
			s.others = appendMerged(s.others, m)
		}
	}
	return s.flush(out)
}

// A step is the results and the other messages between two assistant messages.
type step struct {
	results []lathe.ToolResult
	ids     map[string]bool // call ids of the results
	others  []lathe.Message
}

// add adds results. It returns false if a call would have two results.
func (s *step) add(results []lathe.ToolResult) bool {
	for _, res := range results {
		if s.ids[res.CallID] {
			return false
		}
		if s.ids == nil {
			s.ids = map[string]bool{}
		}
		s.ids[res.CallID] = true
	}
	s.results = append(s.results, results...)
	return true
}

// flush appends the step to out: first the results in the order of the calls of the last message, because clients send parallel results in
// the order of completion, then the results of other calls, then all other messages.
func (s *step) flush(out []lathe.Message) []lathe.Message {
	order := map[string]int{}
	var calls []lathe.ToolCall
	if n := len(out); n > 0 && len(s.results) > 0 {
		calls = out[n-1].Calls()
		for i := range calls {
			order[calls[i].ID] = i
		}
	}
	position := func(res lathe.ToolResult) int {
		if i, ok := order[res.CallID]; ok {
			return i
		}
		return len(calls)
	}
	slices.SortStableFunc(s.results, func(a, b lathe.ToolResult) int { return position(a) - position(b) })
	for _, res := range s.results {
		if i := position(res); i < len(calls) {
			res.Name = calls[i].Name
		}
		out = append(out, lathe.Message{Role: lathe.RoleTool, Wire: lathe.WireMessages, Parts: []lathe.Part{res}})
	}
	out = append(out, s.others...)
	clear(s.results)
	clear(s.others)
	clear(s.ids)
	s.results, s.others = s.results[:0], s.others[:0]
	return out
}

// appendMerged appends m or, if the last message has the same role and neither has Extra, adds its parts to the last message.
func appendMerged(out []lathe.Message, m lathe.Message) []lathe.Message {
	if n := len(out); n > 0 && out[n-1].Role == m.Role && len(out[n-1].Extra) == 0 && len(m.Extra) == 0 {
		out[n-1].Parts = append(out[n-1].Parts, m.Parts...)
		return out
	}
	return append(out, m)
}

func mergeNeighbours(in []lathe.Message) []lathe.Message {
	out := make([]lathe.Message, 0, len(in))
	for _, m := range in {
		if m.Role == lathe.RoleTool {
			out = append(out, m)
		} else {
			out = appendMerged(out, m)
		}
	}
	return out
}

// readMessage parses one message. The tool results in it are returned separately.
func (r *reader) readMessage(v []byte) (m lathe.Message, results []lathe.ToolResult) {
	o := r.Object("", v, messageNames)
	m = lathe.Message{Role: lathe.Role(o.String("role")), Wire: lathe.WireMessages}
	switch m.Role {
	case lathe.RoleUser, lathe.RoleAssistant, lathe.RoleSystem:
	default:
		o.Fail("role", "Must be user, assistant or system.")
	}
	results = r.readContent(o, "content", &m)
	switch {
	case len(results) > 0 && m.Role != lathe.RoleUser:
		o.Fail("content", "Only a message of the user has results.")
	case len(m.Parts) == 0 && len(results) == 0 && m.Role != lathe.RoleAssistant:
		o.Fail("content", "The message must not be empty.")
	}
	m.Extra = o.Rest()
	return m, results
}

// readContent parses a member that is a string or an array of blocks, and adds its parts to m. The tool results in it are returned
// separately.
func (r *reader) readContent(o wire.Object, name string, m *lathe.Message) (results []lathe.ToolResult) {
	switch v := o.Get(name); rawjson.Kind(v) {
	case '"':
		if s := rawjson.Text(v); s != "" {
			m.Parts = []lathe.Part{lathe.Text{Text: s}}
		}
		return nil
	case '[':
	default:
		o.Fail(name, "Must be a string or an array of blocks.")
	}
	for el := range o.Elements(name) {
		switch p := r.readBlock(el, m.Role).(type) {
		case lathe.ToolResult:
			results = append(results, p)
		case lathe.Text:
			if p.Text != "" || len(p.Extra) > 0 {
				m.Parts = append(m.Parts, p)
			}
		default:
			m.Parts = append(m.Parts, p)
		}
	}
	return results
}
