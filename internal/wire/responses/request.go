package responses

import (
	"bytes"
	"encoding/json"
	"strconv"

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
	*wire.ClientRequest
	index      *rawjson.Index           // of the body
	labels     []string                 // server_label of each of Hosted
	inner      map[wire.ToolName]string // names in Request, by what the client calls the tools
	taken      map[string]bool          // names in Request of the tools
	loading    bool                     // the tools are those of an item
	tools      []*lathe.ToolSpec        // those of the request
	references bool                     // the input has items that refer to others
	turns      []*turn
	waiting    map[string][]place // calls without a result, by id
	calls      map[string]string  // names of calls, by id
	orphan     *wire.APIError     // the first result without a call
	updates    []update           // in the input
}

// typeUpdate is the type of an item that changes the effort or the form of the answer for the turns after it.
const typeUpdate = "configuration_update"

// An update is such an item, and its place.
type update struct {
	at   string
	item []byte
}

// readSetting reads what an item says about the request: whether it asks for a compaction, or changes settings.
func (r *reader) readSetting(typ string, v []byte) *wire.APIError {
	if r.Compact {
		return wire.BadRequest("", "An item of type %s must be the last of the input.", typeTrigger)
	}
	if r.Compact = typ == typeTrigger; typ == typeUpdate {
		r.updates = append(r.updates, update{item: v})
	}
	return nil
}

// readUpdates sets Updated.
func (r *reader) readUpdates() *wire.APIError {
	if len(r.updates) == 0 {
		return nil
	}
	given, unknown := r.Sampling, r.Unknown
	for _, u := range r.updates {
		for _, m := range members(u.item, "type", "id") {
			var err *wire.APIError
			switch {
			case m.Name == "reasoning":
				err = r.parseReasoning(m.Value)
			case m.Name == "text" && get(m.Value, "format") != nil:
				r.Sampling.ResponseFormat = nil
				err = r.parseText(m.Value)
			default:
				r.Drop(u.at + "." + m.Name)
			}
			if err != nil {
				return wire.Within(u.at, err)
			}
		}
	}
	updated := r.Sampling
	r.Sampling, r.Unknown, r.Updated = given, unknown, &updated
	return nil
}

// ParseRequest implements [wire.Served]. A member that is null counts as absent. ParseRequest refuses a member whose name
// differs only under Unicode case folding from one that it reads.
//
// The items mcp_call, mcp_list_tools, mcp_approval_request and item_reference, and items of unknown types, become [lathe.Opaque]
// parts of an assistant message, in their place. The caller resolves those that it wrote, or refuses them. An
// mcp_approval_response becomes an element of Approvals only. ParseRequest refuses a result whose call is not in the request,
// unless the call may be in the response of PreviousID or of an item_reference.
func (Codec) ParseRequest(body []byte) (*wire.ClientRequest, error) {
	r := &reader{ClientRequest: &wire.ClientRequest{N: 1, Body: body}}
	if err := r.parse(body); err != nil {
		return nil, err
	}
	return r.ClientRequest, nil
}

// foreign records the error for a value that [lathe.Request] cannot represent.
func (r *reader) foreign(err *wire.APIError) {
	if r.Foreign == nil {
		r.Foreign = err
	}
}

func (r *reader) parse(body []byte) *wire.APIError {
	index, bad := rawjson.CheckIndexed(body, rawjson.Limits{})
	if bad != nil {
		return wire.BadRequest("", "The body is not acceptable JSON: %v.", bad)
	}
	r.index = index
	if err := wire.NeedObject(body[rawjson.SkipSpace(body, 0):], ""); err != nil {
		return wire.BadRequest("", "The body must be a JSON object.")
	}
	settings := wire.JSON("{") // the body without its input, which may be long
	for key, v := range r.index.Members(body) {
		if err := wire.RejectAmbiguousKey(key, requestNames, ""); err != nil {
			return err
		}
		if rawjson.EqualKey(key, "input") {
			continue
		}
		settings = settings.If(len(settings) > 1, ",")
		settings = settings.Raw(key).Lit(":").Raw(v)
	}
	settings = settings.Lit("}")
	input := r.get(body, "input")
	// The tools are parsed first, since the names of calls in the input are mapped by them, and the choice last, since items have tools.
	if err := r.parseTools(get(settings, "tools")); err != nil {
		return err
	}
	if err := r.parseInput(get(settings, "instructions"), input); err != nil {
		return err
	}
	if err := r.parseChoice(get(settings, "tool_choice")); err != nil {
		return err
	}
	for key, v := range rawjson.Members(settings) {
		if !given(v) {
			continue
		}
		if err := r.member(rawjson.Text(key), v); err != nil {
			return err
		}
	}
	if err := r.readUpdates(); err != nil {
		return err
	}
	if r.Model == "" {
		return wire.BadRequest("model", "Say which model to use.")
	}
	if input == nil && r.PreviousID == "" {
		return wire.BadRequest("input", "There must be an input.")
	}
	return r.orphans()
}

// member parses one member of the request.
func (r *reader) member(name string, v []byte) *wire.APIError {
	s := &r.Sampling
	var err *wire.APIError
	switch name {
	case "tools", "tool_choice", "input", "instructions": // were read
	case "model":
		r.Model, err = wire.ParseString(v, name)
	case "parallel_tool_calls":
		r.ParallelToolCalls, err = wire.ParsePointer(v, name, wire.ParseBool)
	case "stream":
		r.Stream, err = wire.ParseBool(v, name)
	case "stream_options":
		err = r.streamOptions(v)
	case "temperature":
		s.Temperature, err = wire.ParsePointer(v, name, wire.ParseFloat)
	case "top_p":
		s.TopP, err = wire.ParsePointer(v, name, wire.ParseFloat)
	case "presence_penalty":
		s.PresencePenalty, err = wire.ParsePointer(v, name, wire.ParseFloat)
	case "frequency_penalty":
		s.FrequencyPenalty, err = wire.ParsePointer(v, name, wire.ParseFloat)
	case "max_output_tokens":
		s.MaxTokens, err = wire.ParsePointer(v, name, wire.ParseCount)
	case "text":
		err = r.parseText(v)
	case "reasoning":
		err = r.parseReasoning(v)
	case "user":
		r.User, err = wire.ParseString(v, name)
	case "store":
		r.Keep, err = wire.ParsePointer(v, name, wire.ParseBool)
	case "previous_response_id":
		if r.PreviousID, err = wire.ParseString(v, name); err == nil && r.PreviousID == "" {
			err = wire.BadRequest(name, "Must not be empty.")
		}
	case "background":
		var background bool
		if background, err = wire.ParseBool(v, name); background {
			err = unsupported(name, "Responses in the background are not supported: use stream.")
		}
	case "conversation", "prompt", "moderation":
		err = unsupported(name, "The member %s is not supported.", name)
	case "context_management":
		err = checkEdits(v)
		r.keep(name, v)
	default:
		err = checkKind(name, v)
		r.keep(name, v)
	}
	return err
}

// keep stores a member that Request has no field for.
func (r *reader) keep(name string, v []byte) {
	r.Unknown = append(r.Unknown, lathe.Member{Name: name, Value: bytes.Clone(v)})
}

func unsupported(param, format string, args ...any) *wire.APIError {
	err := wire.BadRequest(param, format, args...)
	err.Code = "unsupported_parameter"
	return err
}

// checkKind checks the JSON type of a member that is relayed.
func checkKind(name string, v []byte) *wire.APIError {
	var err *wire.APIError
	switch name {
	case "metadata":
		err = wire.NeedObject(v, name)
	case "include":
		err = wire.NeedArray(v, name)
	case "truncation", "service_tier", "safety_identifier", "prompt_cache_key":
		_, err = wire.ParseString(v, name)
	case "max_tool_calls", "top_logprobs":
		_, err = wire.ParseInt(v, name)
	}
	return err
}

// checkEdits returns an error for values of context_management other than compaction.
func checkEdits(v []byte) *wire.APIError {
	if err := wire.NeedArray(v, "context_management"); err != nil {
		return err
	}
	i := 0
	for el := range rawjson.Elements(v) {
		at := "context_management[" + strconv.Itoa(i) + "]"
		if err := wire.NeedObject(el, at); err != nil {
			return err
		}
		if text(el, "type") != "compaction" {
			return unsupported(at+".type", "Only edits of type compaction are supported.")
		}
		i++
	}
	return nil
}

func (r *reader) streamOptions(v []byte) *wire.APIError {
	const at = "stream_options"
	if err := wire.CheckObject(v, optionNames, at); err != nil {
		return err
	}
	r.drop(v, at, "include_obfuscation")
	raw := get(v, "include_obfuscation")
	if raw == nil {
		return nil
	}
	var err *wire.APIError
	r.Obfuscate, err = wire.ParseBool(raw, at+".include_obfuscation")
	return err
}

// parseText parses `text`, which contains the response format. It keeps unknown members of it as a member `text` of Unknown.
func (r *reader) parseText(v []byte) *wire.APIError {
	if err := wire.CheckObject(v, textNames, "text"); err != nil {
		return err
	}
	r.keepRest("text", v, "format")
	format := get(v, "format")
	if format == nil {
		return nil
	}
	const at = "text.format"
	if err := wire.CheckObject(format, formatNames, at); err != nil {
		return err
	}
	switch typ := text(format, "type"); typ {
	case "text":
		r.drop(format, at, "type")
	case "json_schema":
		if _, err := wire.ParseString(get(format, "name"), at+".name"); err != nil {
			return err
		}
		r.Sampling.ResponseFormat = json.RawMessage(wire.JSON(`{"type":"json_schema","json_schema":{`).Members(members(format, "type"), nil).Lit("}}"))
	case "":
		return wire.BadRequest(at+".type", "Must be a string.")
	default: // json_object, and those of other servers
		r.Sampling.ResponseFormat = bytes.Clone(format)
	}
	return nil
}

func (r *reader) parseReasoning(v []byte) *wire.APIError {
	const at = "reasoning"
	if err := wire.CheckObject(v, reasoningNames, at); err != nil {
		return err
	}
	r.keepRest(at, v, "effort", "summary", "generate_summary")
	s := &r.Sampling
	for _, m := range [...]struct {
		name string
		to   *string
	}{{"effort", &s.ReasoningEffort}, {"generate_summary", &s.ReasoningSummary}, {"summary", &s.ReasoningSummary}} {
		raw := get(v, m.name)
		if raw == nil {
			continue
		}
		var err *wire.APIError
		if *m.to, err = wire.ParseString(raw, at+"."+m.name); err != nil {
			return err
		}
	}
	return nil
}

// keepRest stores the members of obj that are not in names, as one member of the request.
func (r *reader) keepRest(name string, obj []byte, names ...string) {
	if rest := members(obj, names...); len(rest) > 0 {
		r.keep(name, wire.JSON("{").Members(rest, nil).Lit("}"))
	}
}

// drop records as dropped the members of obj, whose path is at, that are not in names.
func (r *reader) drop(obj []byte, at string, names ...string) {
	r.DropMembers(at, r.others(obj, names...))
}

// get is the function get for a part of the body.
func (r *reader) get(obj []byte, name string) []byte {
	if v, _ := r.index.Get(obj, name); given(v) {
		return v
	}
	return nil
}

// others returns copies of the members of a part of the body that are not among names and not null.
func (r *reader) others(obj []byte, names ...string) []lathe.Member {
	return wire.OtherMembers(r.index, obj, names...)
}

// members returns copies of the members of obj that are not in except and not null.
func members(obj []byte, except ...string) []lathe.Member {
	return wire.OtherMembers(nil, obj, except...)
}
