package sim

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

// A Fault is one way in which real servers deviate from the protocol of their wire. The model sim/fault-NAME is sim/demo with that fault.
type Fault struct {
	Name string // such as "id-late"
	Does string // a short description
	// Ends is the reason with which a run with this model must end: "answered" if the fault must be tolerated. In the tables that is "".
	Ends lathe.Reason
	// Wires are the wires on which the simulator has the fault; nil: all. On another wire, a request for the model of the fault gets 404.
	Wires []lathe.Wire

	turn  func(req *lathe.Request, t *Turn) // changes the content of the turn
	style *style                            // changes chat completions
	flow  flow
	edit  edit
	// firstPart excludes answers to requests whose last message is the assistant's, so that edit does not apply to a continuation.
	firstPart bool
	lines     lines
	// status is the status of an HTTP error: of each request, or, if once is set, of the first of two equal requests.
	status     int
	once       bool
	header     [2]string
	fail       *wire.APIError // the error in the body, in the form of the wire
	body       string         // the body if fail is nil
	bodyType   string
	nonStream  bool // answer with a JSON completion although the request asks for a stream
	hang       bool // send no byte until the client disconnects
	needsTools bool // only requests with tools have the fault
	// strictRoles refuses messages whose roles do not alternate, as Mistral's templates do.
	strictRoles bool
	// strictSignatures refuses a history in which a signature of reasoning is missing, changed or out of place. With boundSignatures it
	// also refuses one in which anything before the reasoning has changed.
	strictSignatures signatures
}

// signatures select which histories with signatures a model refuses.
type signatures int

const (
	placedSignatures signatures = iota + 1
	boundSignatures
)

// On reports whether the simulator has the fault on this wire.
func (f *Fault) On(w lathe.Wire) bool { return f.Wires == nil || slices.Contains(f.Wires, w) }

// Faults returns all faults, in the order of the documentation.
func Faults() []Fault {
	all := slices.Concat(faults, wireFaults)
	for i := range all {
		all[i].Wires, all[i].Ends = slices.Clone(all[i].Wires), cmp.Or(all[i].Ends, lathe.ReasonAnswered)
	}
	return all
}

// FaultsOn returns the faults that the simulator has on this wire, in the order of [Faults].
func FaultsOn(w lathe.Wire) []Fault {
	return slices.DeleteFunc(Faults(), func(f Fault) bool { return !f.On(w) })
}

func findFault(name string) *Fault {
	for _, list := range [...][]Fault{faults, wireFaults} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}

// The wires of faults that not all wires have.
var (
	chatOnly        = []lathe.Wire{lathe.WireOpenAIChat}
	chatAndMessages = []lathe.Wire{lathe.WireOpenAIChat, lathe.WireMessages}
	notGemini       = []lathe.Wire{lathe.WireOpenAIChat, lathe.WireResponses, lathe.WireMessages}
)

var rateLimited = &wire.APIError{Message: "Rate limit reached", Type: "requests", Code: "rate_limit_exceeded"}

var faults = []Fault{
	chatFault("index-missing", "tool calls without index", style{index: noIndex}),
	chatFault("index-minus-one", "every call has index -1", style{index: constIndex("-1")}),
	{Name: "index-repeated", Does: "every call, and every block, has index 0, with ids of their own", style: &style{index: constIndex("0")}, edit: reindex(func(int) int { return 0 }), Wires: chatAndMessages},
	chatFault("index-repeated-no-id", "every call has index 0 and no id", style{index: constIndex("0"), id: noID}),
	{Name: "index-sparse", Does: "indexes 0, 7, 14, …", style: &style{index: func(i int) string { return itoa(7 * i) }}, edit: reindex(func(i int) int { return 7 * i }), Wires: notGemini},
	chatFault("index-huge", "indexes from a million on", style{index: func(i int) string { return itoa(1_000_000 + i) }}),
	{Name: "id-missing", Does: "calls without id", style: &style{id: noID}, edit: idMissing, Wires: []lathe.Wire{lathe.WireOpenAIChat, lathe.WireGemini}},
	chatFault("id-empty", "id is the empty string", style{id: func(callPiece) (string, bool) { return "", true }}),
	chatFault("id-late", "id only in the last piece of a call", style{id: lateID}),
	chatFault("id-changing", "another id in every piece", style{id: changingID}),
	{Name: "id-repeated", Does: "every call has the same id", turn: repeatID},
	chatFault("name-repeated", "the whole name in every piece", style{nameEvery: true}),
	chatFault("name-split", "the name in two pieces", style{nameSplit: true}),
	chatFault("name-late", "the name after the arguments", style{nameLate: true}),
	chatFault("type-missing", "calls without type", style{noType: true}),
	chatFault("args-object", "arguments as a JSON object instead of a string", style{args: argsObject}),
	chatFault("args-empty-object-first", "arguments \"{}\" first, then the real ones", style{args: argsBraces}),
	chatFault("args-double-encoded", "arguments are a JSON string that holds the JSON", style{args: argsDouble}),
	chatFault("args-null", "arguments null", style{args: argsNull}),
	chatFault("args-missing", "calls with no arguments member at all", style{args: argsNone}),
	chatFault("one-chunk", "each whole call in one chunk", style{whole: true}),
	chatFault("two-in-one-chunk", "all calls in one chunk", style{whole: true, together: true}),
	chatFault("text-after-calls", "text after the calls", style{textAfter: true}),
	chatFault("text-with-calls", "text and calls in one delta", style{textWith: true}),
	{Name: "finish-stop", Does: "finish_reason stop with calls", style: &style{finish: "stop"}, edit: stopReason("end_turn"), Wires: chatAndMessages},
	chatFault("finish-empty", "finish_reason is the empty string", style{finish: noFinish}),
	chatFault("finish-end-turn", "finish_reason end_turn", style{finish: "end_turn"}),
	{Name: "finish-tool-calls", Does: "finish_reason tool_calls without calls", style: &style{finish: "tool_calls"}, edit: stopReason("tool_use"), Wires: chatAndMessages},
	chatFault("finish-twice", "two chunks with a finish_reason", style{finishTwice: true}),
	chatFault("usage-every-chunk", "cumulative usage in every chunk", style{usageEvery: true}),
	{Name: "no-done", Does: "no [DONE] at the end", style: &style{noDone: true}, edit: doneMissing, Wires: []lathe.Wire{lathe.WireOpenAIChat, lathe.WireResponses}},
	chatFault("n-choices", "a second choice beside the first", style{secondChoice: true}),
	{Name: "function-call", Does: "the legacy function_call member", style: &style{legacy: true}, turn: oneCall, Wires: chatOnly},
	{Name: "reasoning", Does: "thinks in the member reasoning", style: &style{reasoning: "reasoning"}, turn: think, Wires: chatOnly},
	{Name: "reasoning-content", Does: "thinks in the member reasoning_content", style: &style{reasoning: "reasoning_content"}, turn: think, Wires: chatOnly},
	{Name: "thinking", Does: "thinks in the member thinking", style: &style{reasoning: "thinking"}, turn: think, Wires: chatOnly},
	{Name: "crlf", Does: "lines end in CR LF", lines: lines{eol: "\r\n"}},
	{Name: "bom", Does: "a byte order mark first", lines: lines{bom: true}},
	{Name: "comments", Does: "comments between the events", lines: lines{comments: true}},
	{Name: "multi-line-data", Does: "each JSON over several data lines", lines: lines{multiline: true}},
	{Name: "long-line", Does: "a line of 100 KiB", lines: lines{longLine: 100 << 10}},
	{Name: "malformed-line", Does: "a data line that is no JSON", lines: lines{malformed: true}, Wires: notGemini},
	{Name: "json-instead-of-stream", Does: "a JSON completion although a stream was asked for", nonStream: true},
	{Name: "error-in-band", Does: "an error object in the middle of the stream", Ends: lathe.ReasonUpstreamError, flow: flow{errorAfter: 2}},
	{Name: "error-in-band-first", Does: "an error object as the first event", Ends: lathe.ReasonUpstreamError, flow: flow{errorAfter: -1}},
	{Name: "cut-mid-argument", Does: "the connection breaks off inside an argument", Ends: lathe.ReasonUpstreamError, flow: flow{cutArgs: true}},
	{Name: "cut-mid-text", Does: "the connection breaks off inside the text", Ends: lathe.ReasonUpstreamError, flow: flow{cutText: true}},
	{Name: "html", Does: "an HTML page under status 200", Ends: lathe.ReasonUpstreamError, status: http.StatusOK, bodyType: "text/html",
		body: "<!doctype html><html><title>502 Bad Gateway</title><h1>Bad Gateway</h1></html>"},
	{Name: "empty-body", Does: "status 200 with an empty body", Ends: lathe.ReasonUpstreamError, status: http.StatusOK, bodyType: "text/event-stream"},
	{Name: "status-400-tools", Does: "400: does not support tools", Ends: lathe.ReasonUpstreamError, status: 400, needsTools: true,
		fail: &wire.APIError{Message: "this model does not support tools", Type: "invalid_request_error", Param: "tools"}},
	{Name: "status-401", Does: "401", Ends: lathe.ReasonUpstreamError, status: 401,
		fail: &wire.APIError{Message: "Incorrect API key provided.", Type: "invalid_request_error", Code: "invalid_api_key"}},
	{Name: "status-404-tools", Does: "404: no endpoints found that support tool use", Ends: lathe.ReasonUpstreamError, status: 404, needsTools: true,
		fail: &wire.APIError{Message: "No endpoints found that support tool use", Code: "404"}},
	{Name: "status-408", Does: "408 the first time that a request comes", status: 408, once: true},
	{Name: "status-429", Does: "429 with Retry-After the first time that a request comes", status: 429, once: true, header: [2]string{"Retry-After", "0"},
		fail: rateLimited},
	{Name: "status-429-always", Does: "429 on every request", Ends: lathe.ReasonUpstreamError, status: 429, header: [2]string{"Retry-After", "0"},
		fail: rateLimited},
	{Name: "status-500", Does: "500 the first time that a request comes", status: 500, once: true, body: "internal error"},
	{Name: "status-500-always", Does: "500 on every request", Ends: lathe.ReasonUpstreamError, status: 500, body: "internal error"},
	{Name: "status-503", Does: "503 the first time that a request comes", status: 503, once: true},
	{Name: "strict-roles", Does: "refuses messages whose roles do not alternate, as Mistral's templates do, and leaves answers blank until it is asked again", strictRoles: true, turn: emptyFinal, Wires: chatOnly},
	{Name: "hang", Does: "accepts the request and never answers", Ends: lathe.ReasonUpstreamError, hang: true},
	{Name: "length", Does: "stops for length in the middle of a call", Ends: lathe.ReasonLength, turn: cutByLength},
	{Name: "content-filter", Does: "stops for the content filter", Ends: lathe.ReasonContentFilter, turn: func(_ *lathe.Request, t *Turn) { t.Finish = lathe.FinishContentFilter }},
	{Name: "empty-final", Does: "answers with nothing until it is asked again", turn: emptyFinal},
	{Name: "unknown-tool", Does: "asks for tools that do not exist, for ever", Ends: lathe.ReasonToolLoop, turn: inventTools},
	{Name: "tool-loop", Does: "repeats the same call for ever", Ends: lathe.ReasonToolLoop, turn: repeatCall},
	{Name: "args-invalid-json", Does: "writes invalid JSON once, then corrects itself", turn: breakArgs(`{"expression": 7 +`), Wires: notGemini},
	{Name: "args-duplicate-keys", Does: "writes a key twice once, then corrects itself", turn: breakArgs(`{"expression":"1","expression":"2"}`), Wires: notGemini},
	{Name: "args-lone-surrogate", Does: "writes half a surrogate pair once, then corrects itself", turn: breakArgs(`{"expression":"\ud800"}`), Wires: notGemini},
	{Name: "args-deep", Does: "nests arguments 1000 deep once, then corrects itself",
		turn: breakArgsBy(func() string { return `{"expression":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}` }), Wires: notGemini},
	{Name: "args-huge", Does: "writes 300 KB of arguments once, then corrects itself",
		turn: breakArgsBy(func() string { return `{"expression":"` + strings.Repeat("1", 300_000) + `"}` })},
}

// chatFault returns a fault in the chunks of chat completions that clients must tolerate.
func chatFault(name, does string, s style) Fault {
	return Fault{Name: name, Does: does, style: &s, Wires: chatOnly}
}

func oneCall(_ *lathe.Request, t *Turn) {
	t.Calls = t.Calls[:min(len(t.Calls), 1)]
}

// thought is the reasoning of a model that thinks, for every request.
const thought = "The user asks for something; let me see which tool fits. "

func repeatID(_ *lathe.Request, t *Turn) {
	for i := range t.Calls {
		t.Calls[i].ID = "call_same"
	}
}

func think(_ *lathe.Request, t *Turn) {
	t.Reasoning = thought
}

// cutByLength truncates the last call of a turn.
func cutByLength(_ *lathe.Request, t *Turn) {
	if n := len(t.Calls); n > 0 {
		t.Calls[n-1].Incomplete = true
		t.Finish = lathe.FinishLength
	}
}

// cutCalls truncates the arguments of calls that are Incomplete. For calls in a dialect, writeText truncates their text instead.
func (t *Turn) cutCalls() {
	for i := range t.Calls {
		if c := &t.Calls[i]; c.Incomplete {
			c.Arguments = c.Arguments[:runeCut(c.Arguments, max(1, len(c.Arguments)/2))]
		}
	}
}

func emptyFinal(req *lathe.Request, t *Turn) {
	last := req.Messages[len(req.Messages)-1]
	if len(t.Calls) == 0 && last.Role == lathe.RoleTool && !asksForAnswer(&last) {
		t.Text = ""
	}
}

// asksForAnswer reports whether the result in m ends with a request for an answer.
func asksForAnswer(m *lathe.Message) bool {
	for _, p := range m.Parts {
		if r, ok := p.(lathe.ToolResult); ok && strings.HasSuffix(r.Content, lathe.DefaultFixEmptyFinalText) {
			return true
		}
	}
	return false
}

// mayCall reports whether the request allows calls.
func mayCall(req *lathe.Request) bool {
	return len(req.Tools) > 0 && req.ToolChoice.Mode != lathe.ChoiceNone
}

// call replaces the turn by one call, after earlier calls in the conversation.
func (t *Turn) call(earlier int, name, args string) {
	t.Text, t.Calls = "", []lathe.ToolCall{{ID: "call_" + itoa(earlier+1), Name: name, Arguments: args}}
}

func inventTools(req *lathe.Request, t *Turn) {
	if mayCall(req) {
		n := readConversation(req).total
		t.call(n, "invented_tool_"+itoa(n+1), "{}")
	}
}

func repeatCall(req *lathe.Request, t *Turn) {
	if !mayCall(req) {
		return
	}
	conv := readConversation(req)
	tool := bestTool(conv.prompt, req.Tools)
	for _, named := range req.Tools {
		if req.ToolChoice.Mode == lathe.ChoiceFunction && named.Name == req.ToolChoice.Name {
			tool = named
		}
	}
	tool = cmp.Or(tool, req.Tools[0])
	t.call(conv.total, tool.Name, fillArguments(tool, conv.prompt))
}

// breakArgs replaces the arguments of the first call of a conversation by args. After the failed result, the call is repeated with
// correct arguments.
func breakArgs(args string) func(*lathe.Request, *Turn) {
	return breakArgsBy(func() string { return args })
}

// breakArgsBy is breakArgs with arguments that are computed when they are needed, because they are long.
func breakArgsBy(args func() string) func(*lathe.Request, *Turn) {
	return func(req *lathe.Request, t *Turn) {
		if !mayCall(req) {
			return
		}
		conv := readConversation(req)
		plan := makePlan(conv.prompt, req.Tools, req.ToolChoice)
		if len(plan) == 0 {
			return
		}
		switch conv.asked {
		case 0:
			t.call(conv.total, plan[0].tool.Name, args())
		case 1:
			t.call(conv.total, plan[0].tool.Name, plan[0].args)
		default:
			conv.results = conv.results[1:]
			*t = Turn{Text: answer(conv)}
		}
	}
}
