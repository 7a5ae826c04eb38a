package messages

import (
	"bytes"
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// Names of the members that are read, by object.
var (
	requestNames = rawjson.NewNames("model", "messages", "system", "max_tokens", "tools", "tool_choice", "stream", "temperature", "top_p",
		"top_k", "stop_sequences", "thinking", "output_config", "metadata", "lathe")
	thinkingNames = rawjson.NewNames("type", "budget_tokens", "display")
	outputNames   = rawjson.NewNames("effort", "format")
	formatNames   = rawjson.NewNames("type", "schema")
	metadataNames = rawjson.NewNames("user_id")
	choiceNames   = rawjson.NewNames("type", "name", "disable_parallel_tool_use")
	toolNames     = rawjson.NewNames("type", "name", "description", "input_schema")
	messageNames  = rawjson.NewNames("role", "content")
	blockNames    = rawjson.NewNames("type", "text", "source", "title", "thinking", "signature", "data", "id", "name", "input",
		"tool_use_id", "content", "is_error", "tool_name")
	sourceNames = rawjson.NewNames("type", "media_type", "data", "url", "file_id", "content")
)

// A reader parses one request.
type reader struct {
	*wire.ClientRequest
	index    *rawjson.Index    // of the body
	counting bool              // a request of count_tokens
	system   []lathe.Message   // the member `system`
	effort   string            // output_config.effort
	thinking string            // thinking.type
	names    map[string]string // of tools: the client's → the internal form's, where they differ
}

// ParseRequest implements [wire.Served]. A member that is null counts as absent.
//
// Results are in the order of their calls, for any order of their blocks. ParseRequest accepts a call without a result and a result
// without a call: the caller may have the missing half.
func (Codec) ParseRequest(body []byte) (*wire.ClientRequest, error) { return parse(body, false) }

// ParseCount parses the body of a request to count tokens, in which max_tokens is not required.
func (Codec) ParseCount(body []byte) (*wire.ClientRequest, error) { return parse(body, true) }

func parse(body []byte, counting bool) (*wire.ClientRequest, error) {
	r := &reader{ClientRequest: &wire.ClientRequest{N: 1, IncludeUsage: true, Body: body}, counting: counting}
	if err := r.read(body); err != nil {
		return nil, err
	}
	return r.ClientRequest, nil
}

func (r *reader) read(body []byte) *wire.APIError {
	index, bad := rawjson.CheckIndexed(body, rawjson.Limits{})
	if bad != nil {
		return wire.BadRequest("", "The body is not acceptable JSON: %v.", bad)
	}
	r.index = index
	if wire.Kind(body[rawjson.SkipSpace(body, 0):]) != '{' {
		return wire.BadRequest("", "The body must be a JSON object.")
	}
	for key := range r.index.Members(body) {
		if err := wire.RejectAmbiguousKey(key, requestNames, ""); err != nil {
			return err
		}
	}
	if tools := r.get(body, "tools"); tools != nil { // first: messages and tool_choice name them
		if err := r.readTools(tools); err != nil {
			return err
		}
	}
	for key, v := range r.index.Members(body) {
		if isNull(v) {
			continue
		}
		name := unquoted(key)
		known, err := r.member(name, v)
		if err != nil {
			return err
		}
		if !known {
			r.Unknown = append(r.Unknown, lathe.Member{Name: name, Value: bytes.Clone(v)})
		}
	}
	switch {
	case r.Model == "":
		return wire.BadRequest("model", "The request must name a model.")
	case r.Sampling.MaxTokens == nil && !r.counting:
		return wire.BadRequest("max_tokens", "The request must have max_tokens.")
	case len(r.Messages) == 0:
		return wire.BadRequest("messages", "There must be at least one message.")
	}
	if len(r.system) > 0 {
		r.Messages = append(r.system, r.Messages...)
		r.Messages = mergeNeighbours(r.Messages)
	}
	r.setReasoning()
	return r.checkChoice()
}

// member reads one member of the request. It reports whether it knows it.
func (r *reader) member(name string, v []byte) (bool, *wire.APIError) {
	s := &r.Sampling
	var err *wire.APIError
	switch name {
	case "model":
		r.Model, err = wire.ParseString(v, name)
	case "messages":
		r.Messages, err = r.readMessages(v)
	case "system":
		err = r.readSystem(v)
	case "max_tokens":
		s.MaxTokens, err = wire.ParsePointer(v, name, wire.ParseCount)
	case "tools": // read before
	case "tool_choice":
		err = r.readChoice(v)
	case "stream":
		r.Stream, err = wire.ParseBool(v, name)
	case "temperature":
		s.Temperature, err = wire.ParsePointer(v, name, wire.ParseFloat)
	case "top_p":
		s.TopP, err = wire.ParsePointer(v, name, wire.ParseFloat)
	case "top_k":
		s.TopK, err = wire.ParsePointer(v, name, wire.ParseCount)
	case "stop_sequences":
		s.Stop, err = parseStrings(v, name)
	case "thinking":
		err = r.readThinking(v)
	case "output_config":
		err = r.readOutput(v)
	case "metadata":
		err = r.readMetadata(v)
	default:
		return false, nil
	}
	return true, err
}

func parseStrings(v []byte, at string) (list []string, err *wire.APIError) {
	if err := wire.NeedArray(v, at); err != nil {
		return nil, err
	}
	for el := range rawjson.Elements(v) {
		s, err := wire.ParseString(el, at+"["+strconv.Itoa(len(list))+"]")
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

func (r *reader) readMetadata(v []byte) *wire.APIError {
	if err := wire.CheckObject(v, metadataNames, "metadata"); err != nil {
		return err
	}
	r.drop(v, "metadata", "user_id")
	var err *wire.APIError
	if id := get(v, "user_id"); id != nil {
		r.User, err = wire.ParseString(id, "metadata.user_id")
	}
	return err
}

// drop notes the members of obj, which stands at the path at, that are not among the names given.
func (r *reader) drop(obj []byte, at string, names ...string) {
	r.DropMembers(at, members(obj, names...))
}
