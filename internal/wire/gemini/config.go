package gemini

import (
	"encoding/json"
	"math"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/destination"
	"github.com/lathe-run/lathe/internal/wire"
)

var (
	configNames = newNameSet("temperature", "topP", "topK", "maxOutputTokens", "stopSequences", "seed", "presencePenalty",
		"frequencyPenalty", "responseMimeType", "responseSchema", "responseJsonSchema", "thinkingConfig", "candidateCount")
	thinkingNames = newNameSet("includeThoughts", "thinkingBudget", "thinkingLevel")
)

// parseConfig parses generationConfig and keeps unknown members.
func (r *reader) parseConfig(v []byte) *wire.APIError {
	const in = "generationConfig"
	members, err := configNames.read(nil, nil, v, in)
	if err != nil {
		return err
	}
	s := &r.Sampling
	var format formatMembers
	for i := range members {
		m := &members[i]
		at := wire.Join(in, m.name)
		switch m.name {
		case "temperature":
			s.Temperature, err = wire.ParsePointer(m.value, at, wire.ParseFloat)
		case "topP":
			s.TopP, err = wire.ParsePointer(m.value, at, wire.ParseFloat)
		case "topK":
			s.TopK, err = wire.ParsePointer(m.value, at, parseInt32)
		case "maxOutputTokens":
			s.MaxTokens, err = wire.ParsePointer(m.value, at, parseCount)
		case "stopSequences":
			s.Stop, err = parseStrings(m.value, at)
		case "seed":
			s.Seed, err = wire.ParsePointer(m.value, at, parseInt)
		case "presencePenalty":
			s.PresencePenalty, err = wire.ParsePointer(m.value, at, wire.ParseFloat)
		case "frequencyPenalty":
			s.FrequencyPenalty, err = wire.ParsePointer(m.value, at, wire.ParseFloat)
		case "candidateCount":
			r.N, err = parseCount(m.value, at)
			if err == nil && r.N != 1 {
				r.Foreign = wire.BadRequest(at, "There can be one candidate.")
			}
		case "thinkingConfig":
			err = r.parseThinking(m.value, at)
		case "responseMimeType", "responseSchema", "responseJsonSchema":
			err = format.take(m, at)
		default:
			r.rest[restConfig] = append(r.rest[restConfig], m.kept())
		}
		if err != nil {
			return err
		}
	}
	return r.setFormat(&format)
}

func (r *reader) parseThinking(v []byte, in string) *wire.APIError {
	members, err := thinkingNames.read(nil, nil, v, in)
	if err != nil {
		return err
	}
	for i := range members {
		m := &members[i]
		at := wire.Join(in, m.name)
		switch m.name {
		case "includeThoughts":
			var include bool
			if include, err = wire.ParseBool(m.value, at); include {
				r.Sampling.ReasoningSummary = "auto"
			}
		case "thinkingBudget":
			r.Sampling.ReasoningBudget, err = wire.ParsePointer(m.value, at, parseInt32)
		case "thinkingLevel":
			var level string
			level, err = wire.ParseString(m.value, at)
			if level = strings.ToLower(level); level != "thinking_level_unspecified" {
				r.Sampling.ReasoningEffort = level
			}
		default:
			r.Drop(at)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// formatMembers are the members that define the response format.
type formatMembers struct {
	mime   string
	schema *member
	all    []lathe.Member
}

func (f *formatMembers) take(m *member, at string) (err *wire.APIError) {
	f.all = append(f.all, m.kept())
	if m.name == "responseMimeType" {
		f.mime, err = wire.ParseString(m.value, at)
		return err
	}
	if f.schema != nil {
		return wire.BadRequest(at, "Send one of responseSchema and responseJsonSchema.")
	}
	if wire.Kind(m.value) != '{' {
		return wire.BadRequest(at, "Must be an object.")
	}
	f.schema = m
	return nil
}

// formatName is the name of the schema in the response format, since schemas have no name on this wire.
const formatName = "response"

// setFormat sets the response format. Formats other than text and JSON are kept unchanged.
func (r *reader) setFormat(f *formatMembers) *wire.APIError {
	switch {
	case f.mime == "application/json" && f.schema == nil:
		r.Sampling.ResponseFormat = []byte(`{"type":"json_object"}`)
	case f.mime == "application/json":
		schema := f.schema.value
		if f.schema.name == "responseSchema" {
			schema = toJSONSchema(schema)
		}
		r.Sampling.ResponseFormat = json.RawMessage(wire.JSON(`{"type":"json_schema","json_schema":{`).Str("name", formatName).Val("schema", schema).Lit("}}"))
	case f.schema != nil && (f.mime == "" || f.mime == "text/plain"):
		return wire.BadRequest("generationConfig."+f.schema.name, "A schema needs the responseMimeType application/json.")
	case f.mime != "" && f.mime != "text/plain":
		r.rest[restConfig] = append(r.rest[restConfig], f.all...)
	}
	return nil
}

// levels are the thinking levels of Gemini 3 models, with the budgets that Google documents for Gemini 2.5 models.
var levels = []struct {
	effort string
	budget int
}{{"minimal", 1024}, {"low", 1024}, {"medium", 8192}, {"high", 24576}}

// thinking has the values of a thinkingConfig.
type thinking struct {
	budget  *int
	level   string
	include bool
}

// thinkingOf returns the thinkingConfig for the sampling of a request.
func thinkingOf(req *lathe.Request, opts *wire.EncodeOptions, d *dropped) (t thinking, ok bool) {
	s := &req.Sampling
	if has(opts.Without, featureThinking) {
		if s.ReasoningBudget != nil {
			d.add("sampling.reasoning_budget")
		}
		if s.ReasoningEffort != "" {
			d.add("sampling.reasoning_effort")
		}
		if s.ReasoningSummary != "" {
			d.add("sampling.reasoning_summary")
		}
		return t, false
	}
	t.include = s.ReasoningSummary != "" && s.ReasoningSummary != "none"
	t.budget = s.ReasoningBudget
	effort := s.ReasoningEffort
	switch {
	case effort == "":
	case t.budget != nil: // the two exclude each other
		d.add("sampling.reasoning_effort")
	case effort == "none":
		if opts.Takes.Thinking == destination.Level {
			t.level = levels[0].effort
			d.add("sampling.reasoning_effort")
		} else {
			t.budget = new(int)
		}
	default:
		level := levels[len(levels)-1] // for xhigh and max
		known := false
		for _, l := range levels {
			if l.effort == effort {
				level, known = l, true
			}
		}
		if !known {
			d.add("sampling.reasoning_effort")
		}
		if opts.Takes.Thinking == destination.Budget || has(opts.Without, featureLevel) {
			t.budget = &level.budget
		} else {
			t.level = level.effort
		}
	}
	if t.budget != nil && (*t.budget > math.MaxInt32 || *t.budget < -1) {
		t.budget = nil
		d.add("sampling.reasoning_budget")
	}
	return t, t.budget != nil || t.level != "" || t.include
}
