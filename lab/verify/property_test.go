package verify_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/lab/verify"
	"github.com/lathe-run/lathe/sim"
)

// An asked is a request of one wire, as a server sees it.
type asked struct {
	wire   lathe.Wire
	body   map[string]any
	text   string // the body
	stream bool
}

func (a *asked) has(text string) bool { return strings.Contains(a.text, text) }

func (a *asked) tools() bool { return a.body["tools"] != nil }

// result reports whether the request has a call with its result, and no further message of the user.
func (a *asked) result() bool { return a.has("clear") && !a.follows() }

// follows reports whether a message of the user follows the result.
func (a *asked) follows() bool { return a.has("Reply with one sentence.") }

// reasons reports whether the request has reasoning or a signature in its history.
func (a *asked) reasons() bool {
	return a.has(map[lathe.Wire]string{lathe.WireOpenAIChat: `"reasoning`, lathe.WireResponses: `"type":"reasoning"`, lathe.WireMessages: `"type":"thinking"`, lathe.WireGemini: `"thoughtSignature"`}[a.wire])
}

// choice returns the tool choice: none, required, named, or "".
func (a *asked) choice() string {
	word := func(v any) string {
		switch v {
		case "none", "NONE":
			return "none"
		case "required", "any", "ANY":
			return "required"
		case nil, "auto", "AUTO":
			return ""
		}
		return "named"
	}
	switch a.wire {
	case lathe.WireMessages:
		return word(member(a.body, "tool_choice", "type"))
	case lathe.WireGemini:
		if member(a.body, "toolConfig", "functionCallingConfig", "allowedFunctionNames") != nil {
			return "named"
		}
		return word(member(a.body, "toolConfig", "functionCallingConfig", "mode"))
	}
	if v := member(a.body, "tool_choice"); v == nil || word(v) != "named" {
		return word(v)
	}
	return "named"
}

// ignore removes the tool choice.
func (a *asked) ignore() {
	delete(a.body, "tool_choice")
	delete(a.body, "toolConfig")
}

func member(v any, path ...string) any {
	for _, name := range path {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

// A property is how a server over the simulated model differs from that model.
type property struct {
	change  func(*asked)        // of the request
	replace []string            // in the text of requests: old and new
	refuse  func(*asked) bool   // answers 400
	fault   func(*asked) string // of the simulator, with which the request is answered; "": none
	on      []lathe.Wire        // nil: all
	model   string              // sim/demo
	limits  bool
	passes  bool // the target's rates stay good enough
}

// A differing is a server with a property.
type differing struct {
	property
	wire  lathe.Wire
	inner http.RoundTripper
}

func (d *differing) RoundTrip(req *http.Request) (*http.Response, error) {
	raw, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(d.replace); i += 2 {
		raw = bytes.ReplaceAll(raw, []byte(d.replace[i]), []byte(d.replace[i+1]))
	}
	a := &asked{wire: d.wire, text: string(raw)}
	numbers := json.NewDecoder(bytes.NewReader(raw))
	numbers.UseNumber()
	if err := numbers.Decode(&a.body); err != nil {
		return nil, err
	}
	a.stream = a.body["stream"] == true || strings.Contains(req.URL.Path, ":stream")
	if d.refuse != nil && d.refuse(a) {
		return &http.Response{StatusCode: http.StatusBadRequest, Header: http.Header{"Content-Type": {"application/json"}}, Request: req,
			Body: io.NopCloser(strings.NewReader(`{"type":"error","error":{"message":"this is not supported here","type":"invalid_request_error"}}`))}, nil
	}
	if d.change != nil {
		d.change(a)
		if raw, err = json.Marshal(a.body); err != nil {
			return nil, err
		}
	}
	req = req.Clone(req.Context())
	if d.fault != nil {
		if name := d.fault(a); name != "" {
			raw = bytes.Replace(raw, []byte(sim.DemoModel), []byte("sim/fault-"+name), 1)
			req.URL.Path, req.URL.RawPath = strings.Replace(req.URL.Path, sim.DemoModel, "sim/fault-"+name, 1), ""
		}
	}
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
	return d.inner.RoundTrip(req)
}

func always(fault string) func(*asked) string { return func(*asked) string { return fault } }

// wrong has requests for arguments answered with others, which do not fit the schema.
func wrong(stream bool) func(*asked) {
	return func(a *asked) {
		if a.stream == stream && a.choice() == "required" && a.tools() && a.has("exactly these arguments") {
			replaceTexts(a.body, "exactly these arguments: ", `exactly these arguments: {"wrong":true} `)
		}
	}
}

// replaceTexts has the texts of a JSON value that hold old end with new in place of what begins there.
func replaceTexts(v any, old, new string) any {
	switch v := v.(type) {
	case string:
		if before, _, ok := strings.Cut(v, old); ok {
			return before + new
		}
	case map[string]any:
		for k := range v {
			v[k] = replaceTexts(v[k], old, new)
		}
	case []any:
		for i := range v {
			v[i] = replaceTexts(v[i], old, new)
		}
	}
	return v
}

var notGemini = []lathe.Wire{lathe.WireOpenAIChat, lathe.WireResponses, lathe.WireMessages}

// properties are the properties by the metric or limit that shows them.
var properties = map[string]property{
	"": {passes: true, limits: true},
	"choice_none": {change: func(a *asked) {
		if a.choice() == "none" {
			a.ignore()
		}
	}},
	"choice_required": {change: func(a *asked) {
		if a.choice() == "required" && a.tools() {
			a.ignore()
		}
	}},
	"choice_named": {change: func(a *asked) {
		if a.choice() == "named" {
			a.ignore()
		}
	}},
	"choice_without_tools": {change: func(a *asked) {
		if !a.tools() {
			a.ignore()
		}
	}},
	"parallel_off": {on: notGemini, change: func(a *asked) {
		delete(a.body, "parallel_tool_calls")
		if c, ok := a.body["tool_choice"].(map[string]any); ok {
			delete(c, "disable_parallel_tool_use")
		}
	}},
	"structured_output": {change: func(a *asked) {
		delete(a.body, "response_format")
		delete(a.body, "text")
		delete(a.body, "output_config")
		if c, ok := a.body["generationConfig"].(map[string]any); ok {
			delete(c, "responseMimeType")
			delete(c, "responseJsonSchema")
		}
	}},
	"strict":          {on: notGemini, passes: true, refuse: func(a *asked) bool { return a.tools() && a.has(`"strict":true`) }},
	"schema_whole":    {change: wrong(false)},
	"schema_streamed": {change: wrong(true)},
	// as a server does that reads numbers as float64
	"fidelity": {replace: []string{"9007199254740993", "9007199254740992", "123456789012345678", "123456789012345680", "0.30000000000000004", "0.3"}},
	"finish": {fault: func(a *asked) string {
		if slices.Contains([]lathe.Wire{lathe.WireOpenAIChat, lathe.WireMessages}, a.wire) {
			return "finish-stop"
		}
		return "length"
	}},
	"usage": {fault: func(a *asked) string {
		if a.wire == lathe.WireOpenAIChat {
			return "usage-every-chunk"
		}
		return "usage-missing"
	}},
	"shape": {fault: always("crlf"), passes: true},
	"delivery": {fault: func(a *asked) string {
		if a.has("Lima") {
			return "status-500-always"
		}
		return ""
	}},
	"conduct":         {fault: always("empty-final")},
	"history_own":     {refuse: func(a *asked) bool { return a.result() }},
	"history_foreign": {refuse: func(a *asked) bool { return a.follows() }},
	"round_trip":      {model: sim.ThinkingModel, refuse: func(a *asked) bool { return a.result() && a.reasons() }},
	"history_plain":   {model: sim.ThinkingModel, refuse: func(a *asked) bool { return a.result() && !a.reasons() }},
	"tools":           {limits: true, passes: true, refuse: func(a *asked) bool { return a.has(`"tool_0021"`) }},
	"argument_bytes":  {limits: true, passes: true, refuse: func(a *asked) bool { return a.has(strings.Repeat("x", 1000)) }},
	"context_bytes":   {limits: true, passes: true, refuse: func(a *asked) bool { return strings.Count(a.text, "only there to be long") > 50 }},
}

// Two endpoints that differ in one property differ in its metric, and in no other, on each wire. The reference is measured once for all
// properties of a wire.
func TestOnePropertyIsFound(t *testing.T) {
	t.Parallel()
	with := func(limits bool) *verify.Options {
		opts := options()
		opts.Limits, opts.MaxTools, opts.MaxArguments, opts.MaxContext = limits, 64, 4096, 8192
		return opts
	}
	for _, w := range wires {
		t.Run(string(w), func(t *testing.T) {
			t.Parallel()
			references := map[shared]verify.Measured{}
			for want, p := range properties {
				if p.on != nil && !slices.Contains(p.on, w) {
					continue
				}
				if p.model == "" {
					p.model = sim.DemoModel
				}
				key := shared{p.model, p.limits}
				if references[key] == nil {
					r, err := verify.MeasureOne(t.Context(), target(p.model, w, nil), true, with(p.limits))
					if err != nil {
						t.Fatal(err)
					}
					references[key] = r
				}
				server := &differing{property: p, wire: w, inner: sim.New(nil).Transport()}
				measured, err := verify.MeasureOne(t.Context(), target(p.model, w, server), false, with(p.limits))
				if err != nil {
					t.Fatal(err)
				}
				rep := verify.Compared(measured, references[key], with(p.limits))
				if got := strings.Join(differences(rep), " "); got != want {
					t.Errorf("finds %q, want %q", got, want)
					for _, m := range rep.Metrics {
						t.Logf("%s: %+v %+v %v", m.ID, m.Target, *m.Reference, m.Deviations)
					}
				}
				if made := rep.Target.Requests + rep.Reference.Requests; made > rep.Budget.Requests {
					t.Errorf("%s: %d requests, and the budget was %d", want, made, rep.Budget.Requests)
				}
				if own := p.model == sim.ThinkingModel && w == lathe.WireOpenAIChat; (rep.Status == verify.Passed) != p.passes && !own {
					t.Errorf("%s: %s %v", want, rep.Status, rep.Why)
				}
				if want == "" && (rep.Trigger.F1 == nil || *rep.Trigger.F1 != 1 || *rep.Trigger.Noise != 1) {
					t.Errorf("%+v", rep.Trigger)
				}
			}
		})
	}
}

// shared names a reference.
type shared struct {
	model  string
	limits bool
}

// differences returns the ids of the metrics and limits in which target and reference differ by more than noise.
func differences(rep *verify.Report) (ids []string) {
	for i := range rep.Metrics {
		if rep.Metrics[i].Differs {
			ids = append(ids, rep.Metrics[i].ID)
		}
	}
	for _, l := range rep.Limits {
		if l.Differs {
			ids = append(ids, l.Target.ID)
		}
	}
	return ids
}
