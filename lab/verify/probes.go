package verify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/schema"
	"github.com/lathe-run/lathe/lab/doctor"
)

// A step is a group of requests.
type step struct {
	name     string
	limits   bool // only with Options.Limits
	requests func(*Options) int
	bytes    func(*Options) int // estimated bytes in addition to those of requests; nil: none
	run      func(context.Context, *side)
}

func times(n int) func(*Options) int { return func(o *Options) int { return n * o.Trials } }

// steps are executed in this order.
var steps = []step{
	{name: "usage", requests: func(*Options) int { return 3 }, run: askUsage},
	{name: "schema", requests: func(*Options) int { return 2 * len(schemaCases) }, run: askSchemas},
	{name: "fidelity", requests: func(o *Options) int { return len(fidelityCases) * o.repeats() }, run: askFidelity},
	{name: "trigger", requests: func(*Options) int { return len(triggers) }, run: func(ctx context.Context, s *side) { s.called = askTriggers(ctx, s) }},
	{name: "contracts", requests: times(6), run: askContracts},
	{name: "strict", requests: times(1), run: askStrict},
	{name: "structured output", requests: times(1), run: askStructured},
	{name: "histories", requests: times(4), run: askHistories},
	{name: "limits", limits: true, requests: limitRequests, bytes: limitBytes, run: findLimits},
}

// repeats returns how often each fidelity case is requested, alternately streamed and whole.
func (o *Options) repeats() int { return (o.Trials + 1) / 2 }

// A schemaCase is the schema of a tool with arguments that match it.
type schemaCase struct{ schema, arguments string }

// schemaCases have features that models and grammars of servers often get wrong: nesting, lists, enums, numbers, optional and nullable
// members, alternatives, definitions, empty objects and free keys.
var schemaCases = []schemaCase{
	{`{"type":"object","properties":{"title":{"type":"string"},"text":{"type":"string"}},"required":["title","text"],"additionalProperties":false}`, `{"title":"Shopping","text":"bread and butter"}`},
	{`{"type":"object","properties":{"count":{"type":"integer","minimum":1,"maximum":10},"price":{"type":"number"},"paid":{"type":"boolean"}},"required":["count","price","paid"],"additionalProperties":false}`, `{"count":3,"price":2.5,"paid":true}`},
	{`{"type":"object","properties":{"unit":{"enum":["celsius","fahrenheit"]},"city":{"type":"string"}},"required":["unit","city"],"additionalProperties":false}`, `{"unit":"celsius","city":"Oslo"}`},
	{`{"type":"object","properties":{"items":{"type":"array","minItems":2,"items":{"type":"object","properties":{"sku":{"type":"string"},"quantity":{"type":"integer"}},"required":["sku","quantity"],"additionalProperties":false}}},"required":["items"],"additionalProperties":false}`, `{"items":[{"sku":"A1","quantity":2},{"sku":"B2","quantity":1}]}`},
	{`{"type":"object","properties":{"address":{"type":"object","properties":{"street":{"type":"string"},"place":{"type":"object","properties":{"city":{"type":"string"},"code":{"type":"string"}},"required":["city","code"],"additionalProperties":false}},"required":["street","place"],"additionalProperties":false}},"required":["address"],"additionalProperties":false}`, `{"address":{"street":"Main Street","place":{"city":"Bern","code":"3011"}}}`},
	{`{"type":"object","properties":{"note":{"type":["string","null"]},"tags":{"type":"array","items":{"type":"string"}}},"required":["note","tags"],"additionalProperties":false}`, `{"note":null,"tags":[]}`},
	{`{"type":"object","properties":{"when":{"anyOf":[{"type":"string"},{"type":"object","properties":{"hour":{"type":"integer"}},"required":["hour"],"additionalProperties":false}]}},"required":["when"],"additionalProperties":false}`, `{"when":{"hour":9}}`},
	{`{"type":"object","properties":{"from":{"$ref":"#/$defs/point"},"to":{"$ref":"#/$defs/point"}},"required":["from","to"],"additionalProperties":false,"$defs":{"point":{"type":"object","properties":{"x":{"type":"integer"},"y":{"type":"integer"}},"required":["x","y"],"additionalProperties":false}}}`, `{"from":{"x":1,"y":2},"to":{"x":3,"y":4}}`},
	{`{"type":"object","properties":{"labels":{"type":"object","additionalProperties":{"type":"integer"}}},"required":["labels"],"additionalProperties":false}`, `{"labels":{"red":1,"blue":2}}`},
	{`{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer"}},"required":["query"],"additionalProperties":false}`, `{"query":"open orders"}`},
}

// strictCases are the indexes of the schemas that all vendors accept with strict. For other schemas the encoder of a protocol omits strict.
var strictCases = []int{0, 2, 4, 7}

// fidelityCases are arguments that servers often change: large integers, long fractions, characters outside the Basic Multilingual Plane,
// escapes, an empty object, JSON in a string.
var fidelityCases = []string{
	`{"value":9007199254740993}`,
	`{"value":0.30000000000000004}`,
	`{"value":-123456789012345678}`,
	`{"value":"𝒳 and 😀"}`,
	`{"value":"two\nlines, a\ttab and a back\\slash"}`,
	`{"value":{}}`,
	`{"value":"{\"inner\":[1,2]}"}`,
	`{"value":"Größe: 日本語"}`,
}

// anySchema allows any value.
const anySchema = `{"type":"object","properties":{"value":{"description":"Any JSON value."}},"required":["value"],"additionalProperties":false}`

// A trigger reports whether a tool was called for a prompt.
type trigger struct{ called, measured bool }

// triggers are prompts, of which the first half need a tool and the others do not. The first needs the tool weather.
var triggers = []string{
	doctor.WeatherPrompt, "Check that the system is up.", "What is the weather in Lima right now?", "Call ping.",
	"Reply exactly with: one two three", "Translate the word bread into French.", "Tell me a joke about cats.", "Reply with the word yes.",
}

// The tools of most steps are those of the doctor.
var weather, ping = doctor.Tools()

// suiteHash returns the SHA-256 of all prompts, schemas and tools.
func suiteHash() string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %s %s", schemaCases, fidelityCases, triggers, weather.Schema, ping.Schema)
	for _, c := range doctor.Contracts() {
		fmt.Fprintf(h, "%q %q", c.Name, c.Prompt)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func submit(schema string) *lathe.ToolSpec {
	return &lathe.ToolSpec{Name: "submit", Description: "Submit the data.", Schema: json.RawMessage(schema)}
}

func prompt(text string, tools ...*lathe.ToolSpec) *lathe.Request {
	return &lathe.Request{Messages: []lathe.Message{lathe.User(text)}, Tools: tools}
}

func required(req *lathe.Request) *lathe.Request {
	req.ToolChoice = lathe.ToolChoice{Mode: lathe.ChoiceRequired}
	return req
}

// offered returns the index of the tool that a call names, or -1.
func offered(c *lathe.ToolCall, tools []*lathe.ToolSpec) int {
	return slices.IndexFunc(tools, func(t *lathe.ToolSpec) bool { return t.Name == c.Name })
}

// fitsSchema reports whether a text is JSON that matches the schema of.
func fitsSchema(text, of []byte) bool {
	if rawjson.Check(text, rawjson.Limits{}) != nil {
		return false
	}
	s, err := schema.Compile(of)
	return err == nil && len(s.Validate(text)) == 0
}

// allValid reports whether an answer has calls and the arguments of all of them match the schemas of their tools.
func allValid(a *doctor.Answer, tools []*lathe.ToolSpec) bool {
	if hasBadArguments(a) {
		return false
	}
	calls := a.Finish.Message.Calls()
	for i := range calls {
		at := offered(&calls[i], tools)
		if at < 0 || calls[i].Incomplete || !fitsSchema([]byte(calls[i].Arguments), tools[at].Schema) {
			return false
		}
	}
	return len(calls) > 0
}

// countFit adds a case to the metric, which succeeds if allValid, and counts the deviations of one that fails.
func (s *side) countFit(metric string, a *doctor.Answer, tools []*lathe.ToolSpec) {
	ok := allValid(a, tools)
	s.count(metric, ok)
	if ok {
		return
	}
	shown := false
	for _, id := range a.Findings {
		if slices.Contains(badArguments, id) {
			s.deviate(metric, id)
			shown = true
		}
	}
	if !shown {
		s.deviate(metric, "schema-violated")
	}
}

// callWanted is the value of the parameter wanted of countConduct for prompts that need a tool.
const callWanted = true

// countConduct adds a case to metricConduct: the answer must have a call if wanted is true, and no call of a tool that is not offered. It
// reports whether the calls can be checked further.
func (s *side) countConduct(a *doctor.Answer, tools []*lathe.ToolSpec, wanted bool) bool {
	if s.countUnknown(a, tools) {
		return false
	}
	called := len(a.Finish.Message.Calls()) > 0
	inText := slices.Contains(a.Findings, "calls-in-text")
	ok := !inText && (called || !wanted)
	s.count(metricConduct, ok)
	if !ok && !inText {
		s.deviate(metricConduct, "no-call")
	}
	return ok && called
}

// countUnknown adds a failed case to metricConduct if an answer has a call of a tool that is not offered, and reports whether it has.
func (s *side) countUnknown(a *doctor.Answer, tools []*lathe.ToolSpec) bool {
	calls := a.Finish.Message.Calls()
	unknown := slices.ContainsFunc(calls, func(c lathe.ToolCall) bool { return offered(&c, tools) < 0 })
	if unknown {
		s.check(metricConduct, "unknown-tool", false)
	}
	return unknown
}

// countAuto adds a case to metricAuto, by the formula of the K2 Vendor Verifier.
func (s *side) countAuto(a *doctor.Answer, tools []*lathe.ToolSpec) {
	if a.Finish.Reason == lathe.FinishToolCalls {
		s.countFit(metricAuto, a, tools)
	}
}

func askUsage(ctx context.Context, s *side) {
	short := prompt("Reply exactly with: yes")
	long := prompt("Reply exactly with: yes\n" + strings.Repeat("This line is only there to be counted.\n", 100))
	var in [3]int64
	for i, c := range []struct {
		req    *lathe.Request
		stream bool
	}{{short, false}, {short, true}, {long, false}} {
		a, o := s.ask(ctx, c.req, mode{stream: c.stream})
		if o != whole || a.Finish.Usage == (lathe.Usage{}) {
			return // already counted
		}
		u := a.Finish.Usage
		s.check(metricUsage, "usage-total", u.TotalTokens == 0 || u.TotalTokens == u.InputTokens+u.OutputTokens)
		in[i] = u.InputTokens
	}
	s.check(metricUsage, "usage-differs-streamed", in[0] == in[1])
	s.check(metricUsage, "usage-not-growing", in[2] > in[0])
}

func askSchemas(ctx context.Context, s *side) {
	for _, stream := range []bool{false, true} {
		metric := metricWhole
		if stream {
			metric = metricStreamed
		}
		for _, c := range schemaCases {
			req := required(prompt("Call submit once with exactly these arguments: "+c.arguments, submit(c.schema)))
			a, o := s.ask(ctx, req, mode{stream: stream, mayRefuse: true})
			switch {
			case o == refused:
				s.tally(metric).Refused++
			case o == whole && len(a.Finish.Message.Calls()) > 0:
				if offered(&a.Finish.Message.Calls()[0], req.Tools) >= 0 {
					s.countFit(metric, a, req.Tools)
					continue
				}
				s.countConduct(a, req.Tools, callWanted)
			}
		}
	}
}

func askFidelity(ctx context.Context, s *side) {
	for i := range len(fidelityCases) * s.opts.repeats() {
		arguments := fidelityCases[i%len(fidelityCases)]
		req := prompt("Call submit once with exactly these arguments: "+arguments, submit(anySchema))
		a, o := s.ask(ctx, req, mode{stream: i/len(fidelityCases)%2 == 0})
		if o != whole || !s.countConduct(a, req.Tools, callWanted) {
			continue
		}
		s.countAuto(a, req.Tools)
		if !allValid(a, req.Tools) {
			continue // the schema metric counts it
		}
		s.count(metricFidelity, rawjson.Equal([]byte(arguments), []byte(a.Finish.Message.Calls()[0].Arguments)))
	}
}

// askTriggers sends each of triggers once, and returns what each led to.
func askTriggers(ctx context.Context, s *side) (out []trigger) {
	for i, text := range triggers {
		req := prompt(text, weather, ping)
		a, o := s.ask(ctx, req, mode{stream: i%2 == 0})
		if o != whole {
			out = append(out, trigger{})
			continue
		}
		wanted := i < len(triggers)/2
		called := len(a.Finish.Message.Calls()) > 0
		if (wanted || called) && s.countConduct(a, req.Tools, wanted) {
			s.countAuto(a, req.Tools)
		}
		out = append(out, trigger{called, true})
	}
	return out
}

// askContracts tests the contracts of the doctor. It also sends the request of parallel-off without the parameter, to count its calls:
// their number is then not checked.
func askContracts(ctx context.Context, s *side) {
	for _, c := range doctor.Contracts() {
		if c.Name == "parallel-off" {
			for range s.opts.Trials {
				s.askForCall(ctx, c.Prompt)
			}
		}
		if slices.Contains(c.NotOn, s.asker.Wire()) {
			continue
		}
		for i := range s.opts.Trials {
			req := c.Request()
			a, o := s.ask(ctx, req, ofTrial(i))
			if o == whole && (hasBadArguments(a) || s.countUnknown(a, req.Tools)) {
				continue // counted by another metric
			}
			s.countFeature(strings.ReplaceAll(c.Name, "-", "_"), o, func() bool { return c.Kept(a.Finish.Message.Calls()) })
		}
	}
	askRequired(ctx, s)
}

// askRequired requires a call without offering a tool, which a server must refuse.
func askRequired(ctx context.Context, s *side) {
	for i := range s.opts.Trials {
		req := required(prompt(triggers[0], weather))
		a, o := s.askBy(ctx, s.asker.AskWithoutTools, req, ofTrial(i))
		switch {
		case o == refused && (a.Status == 400 || a.Status == 422):
			s.count(metricNoTools, true)
		case o == refused:
			s.tally(metricNoTools).Refused++
		case o == whole, o == cut:
			s.check(metricNoTools, "accepted-without-tools", false)
		}
	}
}

// countFeature adds a case of a feature that servers may refuse.
func (s *side) countFeature(metric string, o outcome, ok func() bool) {
	switch o {
	case refused:
		s.tally(metric).Refused++
	case whole:
		s.count(metric, ok())
	case unmeasured, undelivered, cut: // counted by other metrics
	}
}

func askStrict(ctx context.Context, s *side) {
	if s.asker.Wire() == lathe.WireGemini { // the protocol has no such member
		return
	}
	for i := range s.opts.Trials {
		c := schemaCases[strictCases[i%len(strictCases)]]
		tool := submit(c.schema)
		tool.Extra, tool.Wire = []lathe.Member{{Name: "strict", Value: json.RawMessage("true")}}, lathe.WireResponses // the member has the same meaning in all protocols
		req := prompt("Call submit once with exactly these arguments: "+c.arguments, tool)
		a, o := s.ask(ctx, req, ofTrial(i))
		switch {
		case o == refused:
			s.tally(metricStrict).Refused++
		case o == whole && s.countConduct(a, req.Tools, callWanted):
			s.countFit(metricStrict, a, req.Tools)
		}
	}
}

func askStructured(ctx context.Context, s *side) {
	for i := range s.opts.Trials {
		c := schemaCases[i%len(schemaCases)]
		req := prompt("Reply with this JSON object and nothing else: " + c.arguments)
		req.Sampling.ResponseFormat = json.RawMessage(`{"type":"json_schema","json_schema":{"name":"data","strict":true,"schema":` + c.schema + `}}`)
		a, o := s.ask(ctx, req, ofTrial(i))
		s.countFeature(metricStructured, o, func() bool {
			return fitsSchema([]byte(strings.TrimSpace(a.Finish.Message.Text())), []byte(c.schema))
		})
	}
}

// askHistories sends calls back with their results: unchanged, without reasoning and signatures if the answer had any, and a call that the
// server did not make.
func askHistories(ctx context.Context, s *side) {
	for range s.opts.Trials {
		a, o, called := s.askForCall(ctx, triggers[0])
		if called {
			m := withIDs(a.Finish.Message)
			if bare, had := withoutReasoning(m); had {
				s.sendBack(ctx, metricReasoning, answered(triggers[0], m))
				s.sendBack(ctx, metricPlain, answered(triggers[0], bare))
			} else {
				s.sendBack(ctx, metricOwn, answered(triggers[0], m))
			}
		}
		if o == refused {
			continue // the server refuses the request even without a history
		}
		req := answered(triggers[0], calling("call_lathe_verify_0001", `{"city":"Oslo"}`))
		req.Messages = append(req.Messages, lathe.User("Reply with one sentence."))
		s.sendBack(ctx, metricForeign, req)
	}
}

// askForCall sends a prompt that needs a tool, and counts whether the answer calls it. called reports whether the calls can be checked further.
func (s *side) askForCall(ctx context.Context, text string) (a *doctor.Answer, o outcome, called bool) {
	req := prompt(text, weather, ping)
	a, o = s.ask(ctx, req, mode{stream: true})
	called = o == whole && s.countConduct(a, req.Tools, callWanted)
	if called {
		s.countAuto(a, req.Tools)
	}
	return a, o, called
}

// calling returns a message with a call that the server did not make.
func calling(id, arguments string) lathe.Message {
	return lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.ToolCall{ID: id, Name: weather.Name, Arguments: arguments}}}
}

// withoutReasoning returns the message without reasoning and signatures, and whether it had any.
func withoutReasoning(m lathe.Message) (bare lathe.Message, had bool) {
	bare.Role = m.Role
	for _, p := range m.Parts {
		switch p := p.(type) {
		case lathe.Reasoning, lathe.Opaque:
			had = true
		case lathe.ToolCall:
			had = had || len(p.Extra) > 0
			bare.Parts = append(bare.Parts, lathe.ToolCall{ID: p.ID, Name: p.Name, Arguments: p.Arguments})
		default:
			bare.Parts = append(bare.Parts, p)
		}
	}
	return bare, had
}

// withIDs returns the message with a new id for each call that has none, or the id of another call: servers refuse such histories.
func withIDs(m lathe.Message) lathe.Message {
	m.Parts = slices.Clone(m.Parts)
	known := map[string]bool{"": true}
	for i, p := range m.Parts {
		if c, ok := p.(lathe.ToolCall); ok {
			if known[c.ID] {
				c.ID = fmt.Sprintf("call_lathe_verify_%04d", 100+i)
				m.Parts[i] = c
			}
			known[c.ID] = true
		}
	}
	return m
}

// answered returns a request with the calls of the message m and their results.
func answered(text string, m lathe.Message) *lathe.Request {
	req := prompt(text, weather, ping)
	doctor.WithResult(req, m, `{"sky":"clear","celsius":7}`)
	return req
}

// sendBack sends a history, and counts whether it is accepted and answered.
func (s *side) sendBack(ctx context.Context, metric string, req *lathe.Request) {
	a, o := s.ask(ctx, req, mode{stream: true, mayRefuse: true})
	if o == refused {
		s.count(metric, false)
		return
	}
	if o != whole {
		return
	}
	s.count(metric, true)
	sent := req.Messages[1].Calls()[0]
	calls := a.Finish.Message.Calls()
	id := ""
	for i := range calls {
		switch {
		case offered(&calls[i], req.Tools) < 0:
			id = "unknown-tool"
		case calls[i].Name == sent.Name && rawjson.Equal([]byte(calls[i].Arguments), []byte(sent.Arguments)):
			id = "tool-loop"
		}
	}
	if len(calls) == 0 && strings.TrimSpace(a.Finish.Message.Text()) == "" {
		id = "empty-final"
	}
	s.check(metricConduct, id, id == "")
}
