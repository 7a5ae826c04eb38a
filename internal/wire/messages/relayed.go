package messages

import (
	"bytes"
	"strconv"

	"github.com/lathe-run/lathe/internal/rawjson"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

// AppendRelayed appends the body of a client's own request: byte for byte, except for the model's name, the members of
// req.Overrides, and tool_choice if req differs. body must be valid. opts may be nil.
func (Codec) AppendRelayed(dst, body []byte, req *lathe.Request, opts *wire.EncodeOptions) []byte {
	need := map[string][]byte{}
	for _, m := range req.Overrides {
		if !reserved(req, m.Name) {
			need[m.Name] = m.Value
		}
	}
	if req.Model != "" {
		need["model"] = rawjson.AppendQuote(nil, req.Model)
	}
	if opts != nil {
		if given, _ := rawjson.Get(body, "stream"); (string(given) == "true") != opts.Stream {
			need["stream"] = strconv.AppendBool(nil, opts.Stream)
		}
	}
	if len(req.Tools)+len(req.HostedTools) > 0 && !sameChoice(get(body, "tool_choice"), req) {
		choice := (&encoder{req: req}).choice([]byte("{"))
		need["tool_choice"] = get(append(choice, '}'), "tool_choice")
	}
	edit := func(name string, value []byte) (key, to []byte, keep bool) {
		if v, ok := need[name]; ok {
			delete(need, name)
			if !bytes.Equal(v, value) {
				return nil, v, true
			}
		}
		return nil, value, true
	}
	return rawjson.AppendEdited(dst, body, edit, func(dst []byte) []byte {
		for _, m := range req.Overrides { // in their order
			if v, ok := need[m.Name]; ok {
				dst = append(wire.AppendKey(dst, m.Name), v...)
				delete(need, m.Name)
			}
		}
		for _, name := range [...]string{"model", "stream", "tool_choice"} {
			if v, ok := need[name]; ok && len(v) > 0 {
				dst = append(wire.AppendKey(dst, name), v...)
			}
		}
		return dst
	})
}

// sameChoice reports whether the value of tool_choice is that of req.
func sameChoice(given []byte, req *lathe.Request) bool {
	r := reader{ClientRequest: &wire.ClientRequest{}}
	if given != nil && r.readChoice(given) != nil {
		return false
	}
	off := func(p *bool) bool { return p != nil && !*p }
	mode := func(c lathe.ToolChoice) lathe.ToolChoice {
		if c.Mode == "" {
			c.Mode = lathe.ChoiceAuto
		}
		c.Name = shortName(c.Name)
		return c
	}
	return mode(r.ToolChoice) == mode(req.ToolChoice) && off(r.ParallelToolCalls) == off(req.ParallelToolCalls)
}
