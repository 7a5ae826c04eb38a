package messages

import (
	"strconv"

	"github.com/lathe-run/lathe/internal/rawjson"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

// AppendRelayed appends the body of the client's request unchanged, except for the model's name, the members of req.Overrides, stream, and
// tool_choice if that of req differs. body must be valid. opts may be nil.
func (Codec) AppendRelayed(dst, body []byte, req *lathe.Request, opts *wire.EncodeOptions) []byte {
	settings := rawjson.Without(body, "messages") // messages may be long and are only needed once
	var changes wire.Changes
	changes.Override(req, func(name string) bool { return reserved(req, name) })
	if opts != nil {
		if (string(rawjson.At(settings, "stream")) == "true") != opts.Stream {
			changes.Set("stream", strconv.AppendBool(nil, opts.Stream))
		}
	}
	if len(req.Tools)+len(req.HostedTools) > 0 && !sameChoice(get(settings, "tool_choice"), req) {
		choice := (&encoder{planner: planner{req: req}}).choice([]byte("{"))
		changes.Set("tool_choice", get(append(choice, '}'), "tool_choice"))
	}
	return changes.Append(dst, body, nil)
}

// sameChoice reports whether given, a value of tool_choice, is equivalent to the tool choice of req.
func sameChoice(given []byte, req *lathe.Request) bool {
	r := reader{Reader: wire.NewReader(nil)}
	if given != nil && r.Try(func() { r.readChoice(given) }) != nil {
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
