package budget

// This file computes the most that a call can use. It reads the members of a request that limit its answer, in the forms of all protocols:
//
//	{"max_tokens":100,"n":2}   {"generationConfig":{"maxOutputTokens":100,"candidateCount":2}}

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// Upper bounds, in tokens, of the parts of a request other than text. A text has at most as many tokens as bytes with any tokenizer.
const (
	perRequest = 2048   // text that servers add for tools and templates
	perTool    = 64     // markup around a tool
	perImage   = 50_000 // an image of any size: OpenAI counts 48,169 for the largest image of its small models
)

// Names of request members, in all protocols, that limit the length of answers or set their number.
var (
	// The protocols define null as the absence of these limits. For other limits null is undefined.
	wireLimits    = rawjson.NewNames("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens")
	otherLimits   = rawjson.NewNames("max_new_tokens", "num_predict", "n_predict")
	choiceNames   = rawjson.NewNames("n", "best_of", "candidateCount", "candidate_count", "num_return_sequences")
	thinkingNames = rawjson.NewNames("thinking_budget", "thinking_token_budget", "thinking_budget_tokens", "reasoning_budget")
	thoughtNames  = rawjson.NewNames("budget_tokens", "max_tokens")                                                            // members of the objects reasoning and thinking that limit thinking
	nestedNames   = rawjson.NewNames("generationConfig", "generation_config", "options", "chat_template_kwargs", "extra_body") // objects that can contain these members, too
)

// asked is what a request asks for in addition to its conversation: lengths, number and price of answers.
type asked struct {
	output, choices int64
	thinking        int64  // thinking tokens that servers of chat completions may write in addition to output
	budgetTokens    int64  // thinking.budget_tokens, which Messages counts as part of output
	open            bool   // a limit is null, or is not positive in the configuration: the server may apply its own limit
	unbounded       string // member of the client's request with a value that is not a limit; "": none
	predicted       int64  // bytes of a predicted answer, which is charged as output if the model does not write it
	surcharge       string // member for which the vendor charges another price; "": none
}

// A member is a member of a request, or of an object in it.
type member struct {
	name       string
	value      []byte
	configured bool // the configuration sets it, not the client
}

// take reads a member of the request.
func (a *asked) take(m member) {
	switch name := m.name; {
	case wireLimits.Has(name), otherLimits.Has(name):
		a.output = max(a.output, a.number(m, 1))
		isNull := strings.TrimSpace(string(m.value)) == "null"
		a.open = a.open || isNull
		if isNull && !m.configured && otherLimits.Has(name) {
			a.unbounded = name
		}
	case thinkingNames.Has(name):
		a.thinking = max(a.thinking, a.number(m, 0)) // 0 is valid: no thinking
	case choiceNames.Has(name):
		a.choices = max(a.choices, a.number(m, math.MinInt32)) // every value is valid: at least one answer is counted
	case nestedNames.Has(name):
		for name, value := range object(m.value) {
			a.take(member{rawjson.Text(name), value, m.configured})
		}
	case name == "reasoning" || name == "thinking":
		a.takeThinking(m)
	case name == "prediction":
		a.predicted += int64(len(m.value))
	case !m.configured && costsMore(name, m.value):
		a.surcharge = name
	}
}

// takeThinking reads the object reasoning or thinking.
func (a *asked) takeThinking(m member) {
	for key, value := range object(m.value) {
		inner := rawjson.Text(key)
		part := member{m.name + "." + inner, value, m.configured}
		switch {
		case part.name == "thinking.budget_tokens":
			a.budgetTokens = max(a.budgetTokens, a.number(part, 0))
		case thoughtNames.Has(inner):
			a.thinking = max(a.thinking, a.number(part, 0))
		}
	}
}

// number returns the value of a limit, rounded up to a whole number. It returns 0 for null, which means that the member is absent, and for
// a value that is not a number or is below least. In the configuration such a value means the limit of the server, and open is set. In a
// request servers treat it as no limit: unbounded is set, and the request is refused.
func (a *asked) number(m member, least float64) int64 {
	text := strings.TrimSpace(string(m.value))
	if text == "null" {
		return 0
	}
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case err == nil && f >= least || errors.Is(err, strconv.ErrRange) && f > 0:
		return int64(math.Ceil(min(max(f, 0), math.MaxInt32)))
	case m.configured:
		a.open = true
	default:
		a.unbounded = m.name
	}
	return 0
}

// object yields the members of raw if raw is an object, else nothing.
func object(raw []byte) iter.Seq2[[]byte, []byte] {
	at := rawjson.SkipSpace(raw, 0)
	if at >= len(raw) || raw[at] != '{' {
		return func(func([]byte, []byte) bool) {}
	}
	return rawjson.Members(raw[at:])
}

// usualPrice maps members to the values for which vendors charge the list price or less; other values can cost more.
var usualPrice = map[string][]string{
	"service_tier":  {"auto", "default", "standard", "standard_only", "flex", "scale"},
	"speed":         {"standard", "normal"},
	"inference_geo": {"global"},
	"modalities":    {"text"}, // the member is a list of such values
}

// costsMore reports whether a member requests what the price of the model does not include: priority processing, a region, or answers in
// sound or images.
func costsMore(name string, value []byte) bool {
	switch name {
	case "serviceTier":
		name = "service_tier"
	case "responseModalities", "response_modalities":
		name = "modalities"
	case "inferenceGeo":
		name = "inference_geo"
	}
	usual, known := usualPrice[name]
	if !known || string(value) == "null" {
		return false
	}
	var list []string
	if json.Unmarshal(value, &list) != nil {
		var one string
		if json.Unmarshal(value, &one) != nil {
			return true
		}
		list = []string{one}
	}
	return slices.ContainsFunc(list, func(s string) bool { return !slices.Contains(usual, strings.ToLower(s)) })
}

// asks returns what the request asks for. Members that the configuration sets have precedence over those of the client.
func (m *modelMeter) asks(req *lathe.Request) asked {
	a := asked{choices: 1}
	take := func(name string, value []byte) {
		configured := slices.ContainsFunc(m.model.Overrides, func(o lathe.Member) bool { return o.Name == name })
		a.take(member{name, value, configured})
	}
	if p := req.Sampling.MaxTokens; p != nil {
		a.output = int64(max(*p, 0))
	}
	for _, o := range req.Overrides {
		take(o.Name, o.Value)
	}
	if relayed := relayedBody(req); relayed != nil {
		for name, value := range rawjson.Members(relayed) {
			take(rawjson.Text(name), value)
		}
	}
	return a
}

// relayedBody returns the body that is sent in place of the encoded request, or nil if none exists.
func relayedBody(req *lathe.Request) []byte {
	if req.Relay == nil || len(req.Relay.Request) == 0 {
		return nil
	}
	return req.Relay.Request[rawjson.SkipSpace(req.Relay.Request, 0):]
}

// most returns the largest possible number of input and output tokens of a call. limit is the token limit that must be added to its
// request; 0: none.
func (m *modelMeter) most(req *lathe.Request, a *asked, wire lathe.Wire) (input, output int64, limit int) {
	isMessages := wire == lathe.WireMessages
	usual := int64(m.model.MaxTokens) // the longest answer to a request without a limit
	switch {
	case isMessages && usual > 0: // Messages requires a limit: MaxTokens is sent
	case m.model.OutputLimit > 0: // the server limits the answer
		usual = m.model.OutputLimit
	case !isMessages && a.output == 0: // nothing limits the answer: MaxTokens is added to the request
		limit = m.model.MaxTokens
	}
	output = a.output
	if output == 0 || a.open {
		output = max(output, usual)
	}
	if b := req.Sampling.ReasoningBudget; b != nil && int64(*b) >= output { // between tool calls, thinking does not count towards the limit
		output += int64(*b)
	}
	if !isMessages { // for Messages, thinking.budget_tokens is already counted as ReasoningBudget
		output += a.budgetTokens
	}
	output += a.thinking
	const ceiling = 1_000_000_000 // more than any model reads or writes; products do not overflow
	answers := min(output, ceiling) * min(a.choices, ceiling)
	return min(inputTokens(req), ceiling), min(answers+a.predicted, ceiling), limit
}

// inputTokens returns the largest possible number of tokens of a request.
func inputTokens(req *lathe.Request) int64 {
	n := perRequest + len(req.Sampling.ResponseFormat)
	for i := range req.Messages {
		n += messageTokens(&req.Messages[i])
	}
	for _, t := range req.Tools {
		n += perTool + len(t.Name) + len(t.Description) + len(t.Schema)
	}
	for _, t := range req.HostedTools {
		n += perTool + len(t)
	}
	n = max(n, relayedTokens(req))
	for _, o := range req.Overrides {
		n += len(o.Name) + len(o.Value)
	}
	return int64(n)
}

// relayedTokens returns the largest possible number of tokens of a relayed body, 0 without one. The body can contain more than the request,
// for example tools in forms that are not decoded.
func relayedTokens(req *lathe.Request) int {
	body := relayedBody(req)
	if body == nil {
		return 0
	}
	n := perRequest + len(body)
	for i := range req.Messages {
		for b := range images(&req.Messages[i]) {
			n += perImage - min(base64.StdEncoding.EncodedLen(len(b.Data)), n)
		}
	}
	return n
}

// messageTokens returns the largest possible number of tokens of a message with its markup: its size in bytes, with each image counted as
// perImage.
func messageTokens(m *lathe.Message) int {
	n := m.Size()
	for b := range images(m) {
		n += perImage - min(b.Size(), n)
	}
	return n
}

// images yields the images of a message, and all blobs that have a URL.
func images(m *lathe.Message) func(yield func(*lathe.Blob) bool) {
	return func(yield func(*lathe.Blob) bool) {
		for _, p := range m.Parts {
			var list []lathe.Blob
			switch p := p.(type) {
			case lathe.Blob:
				list = []lathe.Blob{p}
			case lathe.ToolResult:
				list = p.Blobs
			default: // text
			}
			for i := range list {
				if b := &list[i]; (strings.HasPrefix(b.MediaType, "image/") || b.URL != "") && !yield(b) {
					return
				}
			}
		}
	}
}
