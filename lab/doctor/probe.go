package doctor

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// A need is the condition of a probe.
type need uint8

const (
	needsNothing need = iota
	needsAnswer
	needsKey
	needsTools
	needsRefusal // the server refuses tools
)

// A probe is one test of the server.
type probe struct {
	name, asks string
	needs      need
	run        func(ctx context.Context, x *examiner)
}

// chatOnly are the probes that apply only to chat completions.
var chatOnly = []string{"parallel-off", "history", "takes", "written"}

// probes are made in this order: later probes use the results of earlier ones.
var probes = []probe{
	{"models", "the list of models", needsNothing, probeModels},
	{"chat", "a plain answer, whole", needsNothing, probeChat(unstreamed)},
	{"stream", "a plain answer, streamed", needsNothing, probeChat(streamed)},
	{"call", "one tool call, whole", needsAnswer, probeCall(unstreamed)},
	{"call-stream", "one tool call, streamed", needsTools, probeCall(streamed)},
	{"parallel", "two calls in one turn", needsTools, probeParallel},
	{"parallel-off", "one call a turn, by parallel_tool_calls", needsTools, probeParallelOff},
	{"no-arguments", "a call to a tool without parameters", needsTools, probeEmpty},
	{"history", "a history whose call was made elsewhere", needsTools, probeHistory},
	{"takes", "roles, and a response format beside a tool", needsTools, probeTakes},
	{"result", "an answer from a tool's result", needsTools, probeResult},
	{"choice-required", "tool_choice: required", needsTools, probeChoice("choice-required")},
	{"choice-named", "tool_choice that names a tool", needsTools, probeChoice("choice-named")},
	{"choice-none", "tool_choice: none", needsTools, probeChoice("choice-none")},
	{"truncation", "max_tokens in the middle of a call", needsTools, probeTruncation},
	{"written", "calls written as text", needsRefusal, probeWritten},
	{"unknown-model", "an error for a model that does not exist", needsAnswer, probeUnknownModel},
	{"wrong-key", "an error for a wrong key", needsKey, probeWrongKey},
	{"malformed", "an error for a request that is not JSON", needsAnswer, probeMalformed},
}

// Tools that probes offer. They are never executed.
var (
	saveNote = &lathe.ToolSpec{Name: "save_note", Description: "Save a note.",
		Schema: json.RawMessage(`{"type":"object","properties":{"title":{"type":"string","description":"The title of the note."},"text":{"type":"string","description":"The text of the note."}},"required":["title","text"],"additionalProperties":false}`)}
	getWeather = &lathe.ToolSpec{Name: "get_weather", Description: "Get the weather of a city.",
		Schema: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string","description":"The name of the city."}},"required":["city"],"additionalProperties":false}`)}
	ping = &lathe.ToolSpec{Name: "ping", Description: "Check that the system is up. It has no parameters.",
		Schema: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)}
)

// The values of the parameters stream: how the answer is requested.
const (
	unstreamed = false
	streamed   = true
)

const (
	echoPrompt = "Reply exactly with: one two three four five"
	notePrompt = `Call save_note with the title "Shopping" and the text "bread, butter, a bottle of milk and two apples"`
	longPrompt = `Call save_note with the title "Shopping" and the text "bread, butter, a bottle of milk, two apples, a pound of flour, ` +
		`six eggs, honey, a bag of rice, lentils, onions, garlic, olive oil, coffee, tea, sugar, salt and pepper"`
	cityPrompt = WeatherPrompt + " What is the weather in Lima?"
	pingPrompt = "Call ping."
)

// answer sends a request and reads the answer. If there is no answer, it returns nil and records a finding: refused if the server refuses
// this request.
func (x *examiner) answer(ctx context.Context, req *lathe.Request, stream bool, refused string) *answer {
	e := x.post(ctx, req, stream)
	if e.status == http.StatusOK {
		return x.read(e, req, stream)
	}
	x.refusal(e, len(req.Tools) > 0, refused)
	return nil
}

// withoutTools is the value of the parameter tools of refusal for a request without tools.
const withoutTools = false

// refusal records the finding for a response that is not an answer.
func (x *examiner) refusal(e *exchange, tools bool, refused string) {
	words := e.message()
	aboutTools := tools && strings.Contains(strings.ToLower(words), "tool")
	toolsFailed := aboutTools && refused == "tools-failed"
	switch {
	case x.unreachable != nil:
	case e.timedOut:
		x.find("hang")
	case e.status == 0:
		x.find("connection-lost", e.explain())
	case e.status >= 300 && e.status < 400:
		x.find("redirect")
	case e.status == http.StatusUnauthorized:
		x.find("status-401", words)
	case e.status == http.StatusForbidden:
		x.find("status-403", words)
	case toolsFailed && e.status == http.StatusNotFound:
		x.refuseTools("status-404-tools", words)
	case toolsFailed:
		x.refuseTools("status-400-tools", words)
	case isTemporary(e.status) && !aboutTools: // ask has recorded it
	case !x.answered && (e.status == http.StatusNotFound || e.refused() && aboutModel(words)):
		x.find("model-unknown", strings.TrimRight(words, ".")+x.names())
	default:
		x.find(refused, e.explain())
	}
}

func (x *examiner) refuseTools(id, words string) {
	x.toolsRefused = true
	x.findAndMend(id, "supports_tools", "false", words)
}

func probeChat(stream bool) func(context.Context, *examiner) {
	return func(ctx context.Context, x *examiner) {
		req := x.request(echoPrompt)
		refused := "chat-refused"
		if stream && x.answered {
			refused = "stream-refused"
		}
		e := x.post(ctx, req, stream)
		if stream && x.answered && e.refused() && strings.Contains(e.message(), "stream_options") {
			x.findAndMend("usage-refused", "include_usage", "false", e.message())
			x.noUsage = true
			e = x.post(ctx, req, stream)
		}
		if e.status != http.StatusOK {
			x.refusal(e, withoutTools, refused)
			return
		}
		a := x.read(e, req, stream)
		if a == nil || a.failed {
			return
		}
		x.answered = true
		if strings.TrimSpace(a.text.String()) == "" && !a.cut && !limited(a) && !a.thought {
			x.find("chat-blank")
		}
	}
}

// expectCall records a finding if the answer is complete and has no call.
func (x *examiner) expectCall(a *answer) {
	if a == nil || !a.ended() || len(a.calls()) > 0 || len(dialectsOf(a.text.String(), a.req.Tools)) > 0 {
		return
	}
	x.find("no-call")
}

func probeCall(stream bool) func(context.Context, *examiner) {
	return func(ctx context.Context, x *examiner) {
		a := x.answer(ctx, x.request(notePrompt, saveNote), stream, "tools-failed")
		x.expectCall(a)
		if a != nil && len(a.calls()) > 0 {
			x.ownCall = a
		}
	}
}

func probeParallel(ctx context.Context, x *examiner) {
	a := x.answer(ctx, x.request(cityPrompt, getWeather, ping), streamed, "tools-failed")
	x.expectCall(a)
	if a != nil && !a.cut && !limited(a) && len(a.calls()) == 1 && len(a.groups) < 2 {
		x.find("one-call-a-turn")
	}
}

func probeParallelOff(ctx context.Context, x *examiner) {
	c := contract("parallel-off")
	a := x.answer(ctx, x.trying(c), streamed, "parallel-refused")
	if a != nil && !c.Kept(a.calls()) {
		x.find("parallel-false-ignored")
	}
}

func probeEmpty(ctx context.Context, x *examiner) {
	x.expectCall(x.answer(ctx, x.request(pingPrompt, ping), streamed, "tools-failed"))
}

// probeResult sends a result for the call that the model made in an earlier probe.
func probeResult(ctx context.Context, x *examiner) {
	if x.ownCall == nil {
		x.probe.Outcome, x.probe.Why = Skipped, "no call came before"
		return
	}
	req := x.request(notePrompt, saveNote)
	m := lathe.Message{Role: lathe.RoleAssistant}
	call := x.ownCall.calls()[0] // one call is sufficient
	if call.ID == "" {
		call.ID = "call_doctor"
	}
	for _, p := range x.ownCall.fin.Message.Parts {
		if _, isCall := p.(lathe.ToolCall); !isCall {
			m.Parts = append(m.Parts, p)
		}
	}
	for _, r := range x.remedies { // in the form in which Lathe would send it with the profile
		r.change(&m, &call)
	}
	m.Parts = append(m.Parts, call)
	content := saved
	if !offered(req.Tools, call.Name) || !whole(call.Arguments) {
		content = `{"ok":false,"error":{"code":"invalid_arguments","message":"the call could not be read: make it again"}}`
	}
	WithResult(req, m, content)
	a := x.answer(ctx, req, streamed, "result-refused")
	if a == nil || !a.ended() {
		return
	}
	calls := a.calls()
	switch {
	case len(calls) > 0 && offered(req.Tools, calls[0].Name) && calls[0].Arguments == call.Arguments && whole(call.Arguments):
		x.find("tool-loop", calls[0].Name)
	case len(calls) == 0 && strings.TrimSpace(a.text.String()) == "":
		x.find("empty-final")
	}
}

// probeChoice returns the probe of a contract of tool_choice.
func probeChoice(name string) func(context.Context, *examiner) {
	return func(ctx context.Context, x *examiner) {
		c := contract(name)
		a := x.answer(ctx, x.trying(c), streamed, name+"-refused")
		if a == nil || !a.ended() || c.Kept(a.calls()) {
			return
		}
		if !x.nativeCalls && c.choice.Mode != lathe.ChoiceNone {
			return // already reported: the server has no native calls
		}
		x.find(name + "-ignored")
	}
}

// trying returns the request of a contract for this model.
func (x *examiner) trying(c *Contract) *lathe.Request {
	req, own := x.request(c.Prompt), c.Request()
	req.Tools, req.ToolChoice, req.ParallelToolCalls = own.Tools, own.ToolChoice, own.ParallelToolCalls
	return req
}

// truncateAt is far below the number of tokens of the call in longPrompt.
const truncateAt = 16

func probeTruncation(ctx context.Context, x *examiner) {
	req := x.request(longPrompt, saveNote)
	req.Sampling.MaxTokens = new(truncateAt)
	a := x.answer(ctx, req, streamed, "max-tokens-refused")
	if a == nil || !a.ended() {
		return
	}
	calls := a.calls()
	if len(calls) == 0 {
		return
	}
	switch last := calls[len(calls)-1].Arguments; {
	case strings.TrimSpace(last) != "" && kindOf(rawjson.Check([]byte(last), rawjson.Limits{})) == rawjson.KindEnd && x.found["args-invalid-json"] == nil:
		x.find("length-unsaid", a.finish())
	case len(calls[0].Arguments) > 8*truncateAt:
		x.find("max-tokens-ignored")
	}
}

// probeWritten tests whether a model whose server refuses tools writes calls as text.
func probeWritten(ctx context.Context, x *examiner) {
	name, ok := dialect.ForModel(x.target.Model)
	if !ok {
		name = "hermes"
	}
	d, ok := dialect.Lookup(name)
	if !ok {
		return
	}
	tools := []*lathe.ToolSpec{saveNote}
	req := x.request(notePrompt)
	req.Messages = append([]lathe.Message{lathe.System(string(d.AppendTools(nil, tools)))}, req.Messages...)
	a := x.answer(ctx, req, streamed, "tools-failed")
	if a == nil {
		return
	}
	a.req.Tools = tools
	x.judgeAnswerText(a)
}
