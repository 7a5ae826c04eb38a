package messages

import (
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// effortNone is the reasoning effort of a request that turns reasoning off.
const effortNone = "none"

func (r *reader) readThinking(v []byte) *wire.APIError {
	if err := wire.CheckObject(v, thinkingNames, "thinking"); err != nil {
		return err
	}
	var err *wire.APIError
	if r.thinking, err = wire.ParseString(get(v, "type"), "thinking.type"); err != nil {
		return err
	}
	switch r.thinking {
	case "adaptive", "disabled":
		r.drop(v, "thinking", "type", "display")
	case "enabled":
		r.drop(v, "thinking", "type", "display", "budget_tokens")
		if r.Sampling.ReasoningBudget, err = wire.ParsePointer(get(v, "budget_tokens"), "thinking.budget_tokens", wire.ParseCount); err != nil {
			return err
		}
	default:
		return wire.BadRequest("thinking.type", "Must be enabled, adaptive or disabled.")
	}
	switch text(v, "display") {
	case "":
	case "summarized":
		r.Sampling.ReasoningSummary = "auto"
	default:
		r.Dropped = append(r.Dropped, "thinking.display")
	}
	return nil
}

// readOutput reads output_config.
func (r *reader) readOutput(v []byte) *wire.APIError {
	if err := wire.CheckObject(v, outputNames, "output_config"); err != nil {
		return err
	}
	r.drop(v, "output_config", "effort", "format")
	var err *wire.APIError
	if effort := get(v, "effort"); effort != nil {
		if r.effort, err = wire.ParseString(effort, "output_config.effort"); err != nil {
			return err
		}
	}
	format := get(v, "format")
	if format == nil {
		return nil
	}
	const at = "output_config.format"
	if err := wire.CheckObject(format, formatNames, at); err != nil {
		return err
	}
	if typ, err := wire.ParseString(get(format, "type"), at+".type"); err != nil {
		return err
	} else if typ != "json_schema" {
		return wire.BadRequest(at+".type", "Must be json_schema.")
	}
	r.drop(format, at, "type", "schema")
	schema := get(format, "schema")
	if err := wire.NeedObject(schema, at+".schema"); err != nil {
		return err
	}
	b := append([]byte(`{"type":"json_schema","json_schema":{"name":"output","strict":true,"schema":`), schema...)
	r.Sampling.ResponseFormat = append(b, "}}"...)
	return nil
}

// setReasoning sets the effort and the budget of reasoning from thinking and output_config. An effort without thinking has a
// budget of no tokens.
func (r *reader) setReasoning() {
	s := &r.Sampling
	s.ReasoningEffort = r.effort
	switch r.thinking {
	case "":
		if r.effort != "" {
			s.ReasoningBudget = new(int)
		}
	case "adaptive":
		if r.effort == "" {
			s.ReasoningEffort = "high" // what Anthropic takes by default
		}
	case "disabled":
		if r.effort != "" {
			r.Dropped = append(r.Dropped, "output_config.effort")
		}
		s.ReasoningEffort = effortNone
	}
}

// jsonSchema returns the schema of a response format of type json_schema, and the type of the format.
func jsonSchema(format []byte) (schema []byte, typ string) {
	if i := rawjson.SkipSpace(format, 0); i < len(format) && format[i] == '{' {
		schema = get(get(format, "json_schema"), "schema")
		if wire.Kind(schema) != '{' {
			schema = nil
		}
		return schema, text(format, "type")
	}
	return nil, ""
}
