package responses

import (
	"bytes"
	"slices"
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
	stored := string(get(settings, "store")) != "false"
	if stored && !e.taken("store") {
		changes.Set("store", []byte("false"))
	}
	changes.Set("include", e.relayedInclude(get(settings, "include"), stored && !e.taken("store")))
	if len(req.Tools) > 0 {
		if req.ToolChoice.Mode != "" && !sameChoice(settings, req.ToolChoice) {
			changes.Set("tool_choice", e.choice(nil, req.ToolChoice))
		}
		if p := req.ParallelToolCalls; p != nil && !e.taken("parallel_tool_calls") {
			v := strconv.AppendBool(nil, *p)
			if given := get(settings, "parallel_tool_calls"); !bytes.Equal(given, v) && (given != nil || !*p) {
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

// relayedInclude returns the new value of include, or nil if it does not change. add is set if reasoning is to be requested as opaque data.
func (e *encoder) relayedInclude(given []byte, add bool) []byte {
	list := wire.JSON("[")
	encrypted, asked := e.has(featureEncrypted), false
	elements := slices.Collect(rawjson.Elements(given))
	elements = slices.AppendSeq(elements, rawjson.Elements(wire.MemberValue(e.req.Overrides, "include")))
	for _, el := range elements {
		isEncrypted := rawjson.EqualKey(el, includeEncrypted)
		asked = asked || isEncrypted
		if encrypted || !isEncrypted {
			list = list.Next().Raw(el)
		}
	}
	if add && encrypted && !asked {
		list = list.Next().Quote(includeEncrypted)
	}
	list = list.Lit("]")
	if given == nil && len(list) == len("[]") || bytes.Equal(rawjson.AppendCompact(nil, given), list) {
		return nil
	}
	return list
}
