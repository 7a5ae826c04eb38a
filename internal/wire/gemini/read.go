package gemini

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// A reader parses one request.
type reader struct {
	wire.Reader
	allowed []string // allowedFunctionNames of the tool choice
	forced  bool     // the tool choice requires a call

	// restConfig and restChoice are the unread members of generationConfig and toolConfig, which the model server may support. Each list
	// becomes one element of Unknown.
	restConfig, restChoice []lathe.Member
}

var requestNames = newNameSet(`contents systemInstruction tools toolConfig generationConfig cachedContent model safetySettings serviceTier labels store
`)

var (
	configNames = newNameSet(`temperature topP topK maxOutputTokens stopSequences seed presencePenalty frequencyPenalty responseMimeType responseSchema
		responseJsonSchema thinkingConfig candidateCount`)
	thinkingNames = newNameSet("includeThoughts thinkingBudget thinkingLevel")
)

// ParseRequest implements [wire.Served]. It does not set Model and Stream, which are in the path of a request. Unknown members of
// generationConfig, and of toolConfig, become one element of Unknown each.
func (Codec) ParseRequest(body []byte) (*wire.ClientRequest, error) {
	r := &reader{Reader: wire.NewReader(body)}
	camel := requestNames.spellings()
	return r.ParseBody(requestNames.exact, func(o wire.Object) { r.read(o.Rename(camel)) })
}

// ParseCount parses the body of a countTokens request: a request, or an object with a request in its member generateContentRequest.
func ParseCount(body []byte) (*wire.ClientRequest, error) {
	if rawjson.Check(body, rawjson.Limits{}) == nil && rawjson.Kind(body[rawjson.SkipSpace(body, 0):]) == '{' {
		if inner := get(body, "generateContentRequest"); inner != nil {
			if get(body, "contents") != nil {
				return nil, wire.BadRequest("contents", "Send either contents or generateContentRequest.")
			}
			body = inner
		}
	}
	return Codec{}.ParseRequest(body)
}

func (r *reader) read(o wire.Object) {
	if o.Get("tools") != nil {
		r.readTools(o)
	}
	if config := o.Get("toolConfig"); config != nil {
		r.readToolConfig(config)
	}
	if o.Get("generationConfig") != nil {
		r.readConfig(configNames.in(o, "generationConfig"))
	}
	r.Model = strings.TrimPrefix(o.OptString("model"), "models/")
	if o.Get("cachedContent") != nil {
		o.Fail("cachedContent", "Cached content is not supported: it belongs to the account of this server.")
	}
	if o.Get("systemInstruction") != nil {
		r.readSystem(contentNames.in(o, "systemInstruction"))
	}
	r.readContents(o)
	r.choose()
	r.Unknown = o.Rest()
	r.addUnknown("generationConfig", r.restConfig)
	r.addUnknown("toolConfig", r.restChoice)
}

// addUnknown adds the unread members of the object that is the member name to Unknown.
func (r *reader) addUnknown(name string, rest []lathe.Member) {
	if len(rest) > 0 {
		r.Unknown = append(r.Unknown, lathe.Member{Name: name, Value: json.RawMessage(wire.JSON("{").Members(rest, nil).Lit("}"))})
	}
}

// readConfig parses generationConfig.
func (r *reader) readConfig(o wire.Object) {
	s := &r.Sampling
	s.Temperature, s.TopP, s.TopK = o.Float("temperature"), o.Float("topP"), wire.Parsed(o, "topK", parseInt32)
	s.PresencePenalty, s.FrequencyPenalty = o.Float("presencePenalty"), o.Float("frequencyPenalty")
	s.MaxTokens, s.Seed = wire.Parsed(o, "maxOutputTokens", parseCount), wire.Parsed(o, "seed", parseInt)
	s.Stop = o.Strings("stopSequences")
	if n := wire.Parsed(o, "candidateCount", parseCount); n != nil {
		if r.N = *n; r.N != 1 {
			r.Refer("generationConfig.candidateCount", "There can be one candidate.")
		}
	}
	if o.Get("thinkingConfig") != nil {
		r.readThinking(thinkingNames.in(o, "thinkingConfig"))
	}
	kept := r.readFormat(o)
	r.restConfig = append(o.Rest(), kept...)
}

func (r *reader) readThinking(o wire.Object) {
	s := &r.Sampling
	if o.Bool("includeThoughts") {
		s.ReasoningSummary = "auto"
	}
	s.ReasoningBudget = wire.Parsed(o, "thinkingBudget", parseInt32)
	if level := strings.ToLower(o.OptString("thinkingLevel")); level != "thinking_level_unspecified" {
		s.ReasoningEffort = level
	}
	o.DropRest()
}

// formatName is the name of the schema in the response format. Schemas have no name on this wire.
const formatName = "response"

// readFormat sets the response format. It returns the members that define formats other than text and JSON, which are passed on unchanged.
func (r *reader) readFormat(o wire.Object) (kept []lathe.Member) {
	mime, name := o.OptString("responseMimeType"), "responseSchema"
	schema := o.OptObject(name)
	if other := o.OptObject("responseJsonSchema"); other != nil {
		if schema != nil {
			o.Fail("responseJsonSchema", "Send one of responseSchema and responseJsonSchema.")
		}
		name, schema = "responseJsonSchema", other
	}
	switch {
	case mime == "application/json" && schema == nil:
		r.Sampling.ResponseFormat = []byte(`{"type":"json_object"}`)
	case mime == "application/json":
		if name == "responseSchema" {
			schema = toJSONSchema(schema)
		}
		r.Sampling.ResponseFormat = json.RawMessage(wire.ObjectOf("type", "json_schema", "json_schema", wire.ObjectOf("name", formatName, "schema", schema)))
	case schema != nil && (mime == "" || mime == "text/plain"):
		o.Fail(name, "A schema needs the responseMimeType application/json.")
	case mime != "" && mime != "text/plain":
		for _, name := range [...]string{"responseMimeType", name} {
			if v := o.Get(name); v != nil {
				kept = append(kept, lathe.Member{Name: name, Value: bytes.Clone(v)})
			}
		}
	}
	return kept
}

// readSystem parses systemInstruction, a content that may contain only text.
func (r *reader) readSystem(o wire.Object) {
	o.OptString("role")
	m := lathe.Message{Role: lathe.RoleSystem, Wire: lathe.WireGemini}
	for p := range r.parts(o) {
		if p.data != "" && p.data != "text" || p.thought {
			r.Fail("", "The instruction of the system can have text alone.")
		}
		if p.text != "" {
			m.Parts = append(m.Parts, lathe.Text{Text: p.text, Extra: p.rest})
		} else {
			r.Drop("")
		}
	}
	o.DropRest()
	if len(m.Parts) > 0 {
		r.Messages = append(r.Messages, m)
	}
}

// compact returns a copy of a value without white space between its tokens.
func compact(v []byte) []byte { return make(wire.JSON, 0, len(v)).Compact(v) }

// without returns a copy of the object obj without the member name in either spelling.
func without(obj []byte, name string) []byte {
	out := wire.JSON("{")
	other := snake(name)
	for key, v := range rawjson.Members(obj) {
		if !rawjson.EqualKey(key, name) && !rawjson.EqualKey(key, other) {
			out = out.Pair(key, v)
		}
	}
	return out.Lit("}")
}
