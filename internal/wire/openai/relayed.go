package openai

import (
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// AppendRelayed appends the body of a client's request for the model server. It is unchanged except for the model's name; the members of
// req.Overrides; stream_options, so that the server sends the usage; the name of the token limit, if opts sets it; and tool_choice and
// parallel_tool_calls, if those of req differ. body must be valid.
func (Upstream) AppendRelayed(dst, body []byte, req *lathe.Request, opts *EncodeOptions) []byte {
	settings := rawjson.Without(body, "messages") // messages may be long and are only needed once
	var changes wire.Changes
	changes.Override(req, reserved)
	usage := opts.Stream && opts.IncludeUsage
	if usage && !changes.Has("stream_options") {
		changes.Set("stream_options", withUsage(rawjson.At(settings, "stream_options")))
	}
	if given := rawjson.At(settings, "tool_choice"); len(req.Tools) > 0 && req.ToolChoice.Mode != "" && (given == nil || !sameChoice(given, req.ToolChoice)) {
		changes.Set("tool_choice", appendToolChoice(nil, req.ToolChoice))
	}
	if len(req.Tools) > 0 && req.ParallelToolCalls != nil && !changes.Has("parallel_tool_calls") {
		changes.Set("parallel_tool_calls", strconv.AppendBool(nil, *req.ParallelToolCalls))
	}
	newName := rawjson.At(settings, "max_completion_tokens") != nil
	return changes.Append(dst, body, func(name string, value []byte) (key, to []byte, keep bool) {
		switch {
		case name == "stream_options":
			return nil, value, usage
		case name == "max_tokens" && opts.MaxCompletionTokens:
			return []byte(`"max_completion_tokens"`), value, !newName
		}
		return nil, value, true
	})
}

// withUsage returns given, the value of stream_options, with include_usage set to true.
func withUsage(given []byte) []byte {
	if string(rawjson.At(given, "include_usage")) == "true" {
		return given
	}
	out := wire.JSON("{").Members(wire.OtherMembers(given, "include_usage"), nil)
	return out.Key("include_usage").Lit("true}")
}
