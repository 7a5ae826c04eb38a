package responses

import (
	"bytes"
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// AppendRelayed implements [wire.Upstream]. It replaces the model's name and the overrides, replaces tool_choice and parallel_tool_calls if
// those of req differ from body, and sets "store": false. If body lets the server store the answer, AppendRelayed also requests reasoning
// as opaque data, without which the client could not return the reasoning.
func (Codec) AppendRelayed(dst, body []byte, req *lathe.Request, opts *wire.EncodeOptions) []byte {
	if opts == nil {
		opts = &wire.EncodeOptions{}
	}
	e := &encoder{req: req, opts: opts}
	settings := rawjson.Without(body, "input") // the input may be long and is only needed once
	var changes wire.Changes
	changes.Override(req, reserved)
	for _, name := range [...]string{"text", "reasoning"} {
		if v := wire.MemberValue(req.Overrides, name); v != nil {
			changes.Set(name, joined(get(settings, name), v))
		}
	}
	var wanted []string
	if string(get(settings, "store")) != "false" && !e.taken("store") {
		changes.Set("store", []byte("false"))
		wanted = []string{includeEncrypted}
	}
	given := get(settings, "include")
	include := e.include(given, wanted...)
	isAbsent := given == nil && len(include) == len("[]")
	isSame := bytes.Equal(rawjson.AppendCompact(nil, given), include)
	if isAbsent || isSame {
		include = nil // unchanged
	}
	changes.Set("include", include)
	if len(req.Tools) > 0 {
		if req.ToolChoice.Mode != "" && !sameChoice(settings, req.ToolChoice) {
			changes.Set("tool_choice", e.choice(nil, req.ToolChoice))
		}
		if p := req.ParallelToolCalls; p != nil && !e.taken("parallel_tool_calls") {
			given := get(settings, "parallel_tool_calls")
			if given == nil {
				given = []byte("true") // the default
			}
			if v := strconv.AppendBool(nil, *p); !bytes.Equal(given, v) {
				changes.Set("parallel_tool_calls", v)
			}
		}
	}
	return changes.Append(dst, body, nil)
}

// joined returns an object with the members of given and of more. Members of more replace members of given with equal names.
func joined(given, more []byte) []byte {
	if rawjson.Kind(given) != '{' || rawjson.Kind(more) != '{' {
		return more
	}
	list := members(more)
	return wire.JSON("{").Members(members(given), func(name string) bool { return wire.Named(list, name) }).Members(list, nil).Lit("}")
}
