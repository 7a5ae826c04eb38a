package messages

import (
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// Names of the members that the codec reads, by object.
var (
	requestNames = nameSet(`model messages system max_tokens tools tool_choice stream temperature top_p top_k stop_sequences thinking output_config
		metadata lathe`)
	thinkingNames = nameSet("type budget_tokens display")
	outputNames   = nameSet("effort format")
	formatNames   = nameSet("type schema")
	metadataNames = nameSet("user_id")
	choiceNames   = nameSet("type name disable_parallel_tool_use")
	toolNames     = nameSet("type name description input_schema")
	messageNames  = nameSet("role content")
	blockNames    = nameSet("type text source title thinking signature data id name input tool_use_id content is_error tool_name")
	sourceNames   = nameSet("type media_type data url file_id content")
)

// A reader parses one request.
type reader struct {
	wire.Reader
	names    map[string]string // client's name → internal name of tools, if they differ
	counting bool              // the request is one to count tokens, which does not require max_tokens
}

// ParseRequest implements [wire.Served]. A member whose value is null is treated as absent.
//
// Tool results are put in the order of their calls, whatever the order of their blocks. ParseRequest accepts a call without a result and a
// result without a call, because the caller may have the other one.
func (Codec) ParseRequest(body []byte) (*wire.ClientRequest, error) {
	return (&reader{Reader: wire.NewReader(body)}).parse()
}

// ParseCount parses the body of a request to count tokens, which does not require max_tokens.
func (Codec) ParseCount(body []byte) (*wire.ClientRequest, error) {
	return (&reader{Reader: wire.NewReader(body), counting: true}).parse()
}

func (r *reader) parse() (*wire.ClientRequest, error) {
	r.IncludeUsage = true
	return r.ParseBody(requestNames, r.read)
}

func (r *reader) read(o wire.Object) {
	if o.Get("tools") != nil { // first, because messages and tool_choice refer to tools
		r.readTools(o)
	}
	s := &r.Sampling
	r.Model, r.Stream = o.OptString("model"), o.Bool("stream")
	s.MaxTokens, s.Temperature, s.TopP, s.TopK = o.Count("max_tokens"), o.Float("temperature"), o.Float("top_p"), o.Count("top_k")
	s.Stop = o.Strings("stop_sequences")
	if choice := o.Get("tool_choice"); choice != nil {
		r.readChoice(choice)
	}
	if o.Get("metadata") != nil {
		metadata := o.Object("metadata", metadataNames)
		r.User = metadata.OptString("user_id")
		metadata.DropRest()
	}
	thinking, effort := r.readThinking(o), r.readOutput(o)
	system := r.readSystem(o)
	if o.Get("messages") != nil {
		r.Messages = r.readMessages(o)
	}
	r.Unknown = o.Rest()
	switch {
	case r.Model == "":
		o.Fail("model", "The request must name a model.")
	case s.MaxTokens == nil && !r.counting:
		o.Fail("max_tokens", "The request must have max_tokens.")
	case len(r.Messages) == 0:
		o.Fail("messages", "There must be at least one message.")
	}
	if len(system) > 0 {
		r.Messages = mergeNeighbours(append(system, r.Messages...))
	}
	r.setReasoning(thinking, effort)
	r.checkChoice()
}

// effortNone is the reasoning effort that turns reasoning off.
const effortNone = "none"

// readThinking reads the member thinking: it sets budget and summary, and returns the type.
func (r *reader) readThinking(o wire.Object) string {
	if o.Get("thinking") == nil {
		return ""
	}
	t := o.Object("thinking", thinkingNames)
	typ, display := t.String("type"), rawjson.Text(t.Get("display"))
	switch typ {
	case "adaptive", "disabled":
	case "enabled":
		r.Sampling.ReasoningBudget = t.Count("budget_tokens")
		if r.Sampling.ReasoningBudget == nil {
			t.Fail("budget_tokens", "Must be an integer from 1 to 2147483647.")
		}
	default:
		t.Fail("type", "Must be enabled, adaptive or disabled.")
	}
	t.DropRest()
	switch display {
	case "":
	case "summarized":
		r.Sampling.ReasoningSummary = "auto"
	default:
		r.Drop("thinking.display")
	}
	return typ
}

// readOutput reads output_config: it sets the response format, and returns the effort.
func (r *reader) readOutput(o wire.Object) (effort string) {
	if o.Get("output_config") == nil {
		return ""
	}
	config := o.Object("output_config", outputNames)
	effort = config.OptString("effort")
	given := config.Get("format") != nil
	config.DropRest()
	if !given {
		return effort
	}
	format := config.Object("format", formatNames)
	if format.String("type") != "json_schema" {
		format.Fail("type", "Must be json_schema.")
	}
	schema := format.RawObject("schema")
	format.DropRest()
	b := append([]byte(`{"type":"json_schema","json_schema":{"name":"output","strict":true,"schema":`), schema...)
	r.Sampling.ResponseFormat = append(b, "}}"...)
	return effort
}

// setReasoning sets the effort and the budget from the type of thinking and the effort of output_config. If there is an effort but no
// thinking, the budget is 0 tokens.
func (r *reader) setReasoning(thinking, effort string) {
	s := &r.Sampling
	s.ReasoningEffort = effort
	switch thinking {
	case "":
		if effort != "" {
			s.ReasoningBudget = new(int)
		}
	case "adaptive":
		if effort == "" {
			s.ReasoningEffort = "high" // the default of Anthropic's API
		}
	case "disabled":
		if effort != "" {
			r.Drop("output_config.effort")
		}
		s.ReasoningEffort = effortNone
	}
}
