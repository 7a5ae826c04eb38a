package budget

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// What a request has besides its texts, in tokens at most. No tokenizer makes more tokens of a text than it has bytes.
const (
	perRequest = 2048   // what servers add for tools and templates
	perTool    = 64     // the marks around a tool
	perImage   = 50_000 // an image, of whatever size: OpenAI counts 48,169 for the largest one of its small models
)

// Names of members of a request, on all wires, that say how long and how many answers may be.
var (
	limitNames  = rawjson.NewNames("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens", "max_new_tokens", "num_predict", "n_predict")
	choiceNames = rawjson.NewNames("n", "best_of", "candidateCount", "candidate_count", "num_return_sequences")
	nestedNames = rawjson.NewNames("generationConfig", "generation_config", "options") // objects that have them, too
)

// asked is what a request asks for besides its conversation.
type asked struct {
	output, choices int64
	predicted       int64  // bytes of a predicted answer, which is charged as output where the model does not write it
	surcharge       string // a member for which the vendor asks another price; "": none
}

// take reads a member of the request. own says that the operator has set it.
func (a *asked) take(name string, value []byte, own bool) {
	switch {
	case limitNames.Has(name):
		a.output = max(a.output, number(value))
	case choiceNames.Has(name):
		a.choices = max(a.choices, number(value))
	case nestedNames.Has(name):
		a.takeObject(value, own)
	case name == "prediction":
		a.predicted += int64(len(value))
	case !own && costsMore(name, value):
		a.surcharge = name
	}
}

func (a *asked) takeObject(raw []byte, own bool) {
	if at := rawjson.SkipSpace(raw, 0); at < len(raw) && raw[at] == '{' {
		for name, value := range rawjson.Members(raw[at:]) {
			a.take(rawjson.Text(name), value, own)
		}
	}
}

// usualPrice are the values of members for which vendors ask their list price or less; for any other value they can ask more.
var usualPrice = map[string][]string{
	"service_tier":  {"auto", "default", "standard", "standard_only", "flex", "scale"},
	"speed":         {"standard", "normal"},
	"inference_geo": {"global"},
	"modalities":    {"text"}, // a list
}

// costsMore reports whether a member asks for what the price of the model does not include: processing with priority, a region,
// or answers in sound or images.
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
	own := func(name string) bool {
		return slices.ContainsFunc(m.model.Overrides, func(o lathe.Member) bool { return o.Name == name })
	}
	if p := req.Sampling.MaxTokens; p != nil {
		a.output = int64(max(*p, 0))
	}
	for _, o := range req.Overrides {
		a.take(o.Name, o.Value, own(o.Name))
	}
	if relayed := relayedBody(req); relayed != nil {
		for name, value := range rawjson.Members(relayed) {
			name := rawjson.Text(name)
			a.take(name, value, own(name))
		}
	}
	return a
}

// relayedBody returns the object that is sent in place of the request, or nil if the request itself is sent.
func relayedBody(req *lathe.Request) []byte {
	if req.Relay == nil || len(req.Relay.Request) == 0 {
		return nil
	}
	return req.Relay.Request[rawjson.SkipSpace(req.Relay.Request, 0):]
}

// most returns the most input and output tokens of a call. limit is the token limit that its request must be sent with; 0: it is
// sent as it is.
func (m *modelMeter) most(req *lathe.Request, a *asked, wire lathe.Wire) (input, output int64, limit int) {
	input, output = inputTokens(req), a.output
	switch {
	case output > 0:
	case wire == lathe.WireMessages && m.model.MaxTokens > 0: // which demands a limit, and is sent this one
		output = int64(m.model.MaxTokens)
	case m.model.OutputLimit > 0:
		output = m.model.OutputLimit
	default:
		output, limit = int64(m.model.MaxTokens), m.model.MaxTokens
	}
	if b := req.Sampling.ReasoningBudget; b != nil && int64(*b) >= output { // between calls of tools it does not count for the limit
		output += int64(*b)
	}
	const most = 1_000_000_000 // no model reads or writes as much, and the product fits
	return min(input, most), min(min(output, most)*min(a.choices, most)+a.predicted, most), limit
}

// number returns a number as a whole one, rounded up; 0 for what is no number above 0.
func number(raw []byte) int64 {
	f, err := strconv.ParseFloat(strings.TrimSpace(string(raw)), 64)
	if err != nil || !(f > 0) {
		return 0
	}
	return int64(math.Ceil(min(f, math.MaxInt32)))
}

// inputTokens returns the most tokens that a request can have.
func inputTokens(req *lathe.Request) int64 {
	n := perRequest
	for i := range req.Messages {
		n += messageTokens(&req.Messages[i])
	}
	for _, t := range req.Tools {
		n += perTool + len(t.Name) + len(t.Description) + len(t.Schema)
	}
	for _, t := range req.HostedTools {
		n += perTool + len(t)
	}
	n += len(req.Sampling.ResponseFormat)
	overrides := 0
	for _, o := range req.Overrides {
		overrides += len(o.Name) + len(o.Value)
	}
	return int64(max(n, relayedTokens(req)) + overrides)
}

// relayedTokens returns the most tokens of a body that is sent in place of the request: it can have what the request does not, such as
// tools of forms that are not read. 0: there is no such body.
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

// messageTokens returns the most tokens of a message, its marks included, for which its size has more than enough. The data of an image
// counts as an image, other data with its size.
func messageTokens(m *lathe.Message) int {
	n := m.Size()
	for b := range images(m) {
		n += perImage - min(b.Size(), n)
	}
	return n
}

// images yields the images of a message, and what it refers to by an address.
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
