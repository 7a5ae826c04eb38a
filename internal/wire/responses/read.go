package responses

import (
	"bytes"
	"encoding/json"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// Names of the members that are read, by object.
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
	labels  []string                 // server_label of each of Hosted
	inner   map[wire.ToolName]string // names in Request, by what the client calls the tools
	taken   map[string]bool          // names in Request of the tools
	loading bool                     // the tools are those of an item
	tools   []*lathe.ToolSpec        // those of the request
}

func newReader(body []byte) *reader {
	return &reader{Reader: wire.NewReader(body), inner: map[wire.ToolName]string{}, taken: map[string]bool{}}
}

// ParseRequest implements [wire.Served]. A member that is null counts as absent. ParseRequest refuses a member whose name
// differs only under Unicode case folding from one that it reads.
//
// The items mcp_call, mcp_list_tools, mcp_approval_request and item_reference, and items of unknown types, become [lathe.Opaque]
// parts of an assistant message, in their place. The caller resolves those that it wrote, or refuses them. An
// mcp_approval_response becomes an element of Approvals only. ParseRequest refuses a result whose call is not in the request,
// unless the call may be in the response of PreviousID or of an item_reference.
func (Codec) ParseRequest(body []byte) (*wire.ClientRequest, error) {
	r := newReader(body)
	return r.ParseBody(requestNames, r.read)
}

func (r *reader) read(o wire.Object) {
	// The tools are parsed first, since the names of calls in the input are mapped by them, and the choice after it, since items have tools.
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
	case in.orphan != nil && r.PreviousID == "" && !in.references: // else the call may be in a response that the input refers to
		r.Fail(in.orphan.Param, "%s", in.orphan.Message)
	}
}

// readOther reads a member that Request has no field for, or whose other members it has none for.
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
		if wire.Kind(v) != '[' {
			o.Fail(name, "Must be an array.")
		}
	case "truncation", "service_tier", "safety_identifier", "prompt_cache_key":
		o.String(name)
	case "max_tool_calls", "top_logprobs":
		o.Int(name)
	}
	r.keep(name, bytes.Clone(v))
}

// keep stores a member that Request has no field for.
func (r *reader) keep(name string, v []byte) {
	r.Unknown = append(r.Unknown, lathe.Member{Name: name, Value: v})
}

// keepRest stores the members of an object that have not been read, as one member of the request.
func (r *reader) keepRest(name string, o wire.Object) {
	if rest := o.Rest(); len(rest) > 0 {
		r.keep(name, wire.JSON("{").Members(rest, nil).Lit("}"))
	}
}

// codeUnsupported is the code of errors for members that Lathe does not have.
const codeUnsupported = "unsupported_parameter"

// readUpdates sets Updated.
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

// readText parses `text`, which contains the response format. It keeps unknown members of it as a member `text` of Unknown.
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
	default: // json_object, and those of other servers
		r.Sampling.ResponseFormat = bytes.Clone(raw)
	}
}

// readReasoning parses `reasoning`. It keeps unknown members of it as a member `reasoning` of Unknown.
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

// members returns copies of the members of obj that are not in except and not null.
func members(obj []byte, except ...string) []lathe.Member {
	return wire.OtherMembers(obj, except...)
}
