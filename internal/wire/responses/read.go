package responses

import (
	"bytes"
	"encoding/json"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// Names of the members that the codec reads, by object.
var (
	requestNames = rawjson.NewNames("model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "stream",
		"stream_options", "temperature", "top_p", "max_output_tokens", "presence_penalty", "frequency_penalty", "text", "reasoning",
		"user", "store", "previous_response_id", "background", "conversation", "prompt", "moderation", "context_management",
		"include", "metadata", "truncation", "service_tier", "safety_identifier", "prompt_cache_key", "max_tool_calls", "top_logprobs", "lathe")
	optionNames    = rawjson.NewNames("include_obfuscation")
	textNames      = rawjson.NewNames("format")
	formatNames    = rawjson.NewNames("type", "name", "schema", "strict", "description")
	reasoningNames = rawjson.NewNames("effort", "summary", "generate_summary")
	choiceNames    = rawjson.NewNames("type", "name", "namespace", "function", "mode", "tools")
	toolNames      = rawjson.NewNames("type", "name", "description", "parameters", "strict", "function", "tools", "format")
	itemNames      = rawjson.NewNames("type", "role", "content", "phase", "call_id", "name", "namespace", "arguments", "input",
		"output", "summary", "encrypted_content", "id", "approval_request_id", "request_id", "approve", "reason")
	partNames = rawjson.NewNames("type", "text", "refusal", "image_url", "file_id", "detail", "file_data", "file_url", "filename")
)

// A reader parses one request.
type reader struct {
	wire.Reader
	labels []string                 // server_label of each element of Hosted
	inner  map[wire.ToolName]string // internal names of tools by the client's names
	taken  map[string]bool          // internal names that are in use
	inItem bool                     // the tools being read are those of an input item; set by addTools alone
}

func newReader(body []byte) *reader {
	return &reader{Reader: wire.NewReader(body), inner: map[wire.ToolName]string{}, taken: map[string]bool{}}
}

// ParseRequest implements [wire.Served]. A member whose value is null is treated as absent. A member whose name equals one that is read
// only under Unicode case folding is refused.
//
// Items of the types mcp_call, mcp_list_tools, mcp_approval_request and item_reference, and of unknown types, become [lathe.Opaque] parts
// of an assistant message at their place. The caller resolves those that it wrote, and refuses others. An mcp_approval_response only
// becomes an element of Approvals. A result whose call is not in the request is refused, unless the call may be in the response of
// PreviousID or of an item_reference.
func (Codec) ParseRequest(body []byte) (*wire.ClientRequest, error) {
	r := newReader(body)
	return r.ParseBody(requestNames, r.read)
}

func (r *reader) read(o wire.Object) {
	// Tools are read first, because they determine the internal names of calls in the input. The tool choice is read after the input,
	// because input items may also declare tools.
	r.readTools(o)
	in := r.readInput(o)
	r.readChoice(o)
	s := &r.Sampling
	r.Model, r.User, r.Stream = o.OptString("model"), o.OptString("user"), o.Bool("stream")
	r.ParallelToolCalls, r.Keep = o.OptBool("parallel_tool_calls"), o.OptBool("store")
	s.Temperature, s.TopP = o.Float("temperature"), o.Float("top_p")
	s.PresencePenalty, s.FrequencyPenalty = o.Float("presence_penalty"), o.Float("frequency_penalty")
	s.MaxTokens = o.Count("max_output_tokens")
	if o.Get("stream_options") != nil {
		options := o.Object("stream_options", optionNames)
		r.Obfuscate = options.Bool("include_obfuscation")
		options.DropRest()
	}
	if o.Get("previous_response_id") != nil {
		if r.PreviousID = o.String("previous_response_id"); r.PreviousID == "" {
			o.Fail("previous_response_id", "Must not be empty.")
		}
	}
	if o.Bool("background") {
		o.FailCode("background", codeUnsupported, "Responses in the background are not supported: use stream.")
	}
	for name, v := range o.Unread() {
		r.readOther(o, name, v)
	}
	r.readUpdates(in.updates)
	switch {
	case r.Model == "":
		o.Fail("model", "Say which model to use.")
	case o.Get("input") == nil && r.PreviousID == "":
		o.Fail("input", "There must be an input.")
	case in.orphan != nil && r.PreviousID == "" && !in.references: // otherwise the call may be in a response to which the input refers
		r.Fail(in.orphan.Param, "%s", in.orphan.Message)
	}
}

// readOther handles a member that is not read by read: it reads part of it, refuses it, or stores it in Unknown.
func (r *reader) readOther(o wire.Object, name string, v []byte) {
	switch name {
	case "text":
		r.readText(name, v)
		return
	case "reasoning":
		r.readReasoning(name, v)
		return
	case "conversation", "prompt", "moderation":
		o.FailCode(name, codeUnsupported, "The member %s is not supported.", name)
	case "context_management":
		for el := range o.Elements(name) {
			if rawjson.Text(r.Object("", el, itemNames).Get("type")) != typeCompaction {
				r.FailCode("type", codeUnsupported, "Only edits of type compaction are supported.")
			}
		}
	case "metadata":
		o.RawObject(name)
	case "include":
		if rawjson.Kind(v) != '[' {
			o.Fail(name, "Must be an array.")
		}
	case "truncation", "service_tier", "safety_identifier", "prompt_cache_key":
		o.String(name)
	case "max_tool_calls", "top_logprobs":
		o.Int(name)
	}
	r.keep(name, bytes.Clone(v))
}

// keep stores a member in Unknown.
func (r *reader) keep(name string, v []byte) {
	r.Unknown = append(r.Unknown, lathe.Member{Name: name, Value: v})
}

// keepRest stores the unread members of an object in Unknown, as one member with the given name.
func (r *reader) keepRest(name string, o wire.Object) {
	if rest := o.Rest(); len(rest) > 0 {
		r.keep(name, wire.JSON("{").Members(rest, nil).Lit("}"))
	}
}

// codeUnsupported is the error code for members that Lathe does not support.
const codeUnsupported = "unsupported_parameter"

// readUpdates sets Updated to the sampling after all configuration updates in the input.
func (r *reader) readUpdates(updates []update) {
	if len(updates) == 0 {
		return
	}
	given, unknown := r.Sampling, r.Unknown
	for _, u := range updates {
		for _, m := range members(u.item, "type", "id") {
			switch {
			case m.Name == "reasoning":
				r.readReasoning(u.at+".reasoning", m.Value)
			case m.Name == "text" && get(m.Value, "format") != nil:
				r.Sampling.ResponseFormat = nil
				r.readText(u.at+".text", m.Value)
			default:
				r.Drop(u.at + "." + m.Name)
			}
		}
	}
	updated := r.Sampling
	r.Sampling, r.Unknown, r.Updated = given, unknown, &updated
}

// readText parses `text`, which contains the response format. Its unknown members are stored as a member `text` of Unknown.
func (r *reader) readText(at string, v []byte) {
	o := r.Object(at, v, textNames)
	raw := o.Get("format")
	if r.keepRest("text", o); raw == nil {
		return
	}
	format := o.Object("format", formatNames)
	switch rawjson.Text(format.Get("type")) {
	case "text":
		format.DropRest()
	case "json_schema":
		format.String("name")
		r.Sampling.ResponseFormat = json.RawMessage(wire.JSON(`{"type":"json_schema","json_schema":{`).Members(members(raw, "type"), nil).Lit("}}"))
	case "":
		format.Fail("type", "Must be a string.")
	default: // json_object, and formats of other servers
		r.Sampling.ResponseFormat = bytes.Clone(raw)
	}
}

// readReasoning parses `reasoning`. Its unknown members are stored as a member `reasoning` of Unknown.
func (r *reader) readReasoning(at string, v []byte) {
	o := r.Object(at, v, reasoningNames)
	s := &r.Sampling
	for _, m := range [...]struct {
		name string
		to   *string
	}{{"effort", &s.ReasoningEffort}, {"generate_summary", &s.ReasoningSummary}, {"summary", &s.ReasoningSummary}} {
		if o.Get(m.name) != nil {
			*m.to = o.String(m.name)
		}
	}
	r.keepRest("reasoning", o)
}

// members returns copies of the members of obj that are not null and whose names are not in except.
func members(obj []byte, except ...string) []lathe.Member {
	return wire.OtherMembers(obj, except...)
}
