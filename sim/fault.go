package sim

import (
	"net/http"
	"strings"

	"github.com/lathe-run/lathe"
)

// A Fault is one way in which real servers bend the wire. The model sim/fault-NAME answers as
// sim/demo does, with that fault.
type Fault struct {
	Name string
	Does string // what it does, in a few words
	// Ends says how a run ends that meets the fault: "answered" when it must be tolerated.
	Ends lathe.Reason

	style style
	turn  func(req *lathe.Request, t *Turn) // changes what is said rather than how
	// status answers with an HTTP error: each request, or with once set the first time that it comes.
	status     int
	once       bool
	header     [2]string
	body       string
	bodyType   string
	nonStream  bool // a JSON completion although a stream was asked for
	hang       bool // no byte until the client leaves
	needsTools bool // only when the request has tools
	// strictRoles refuses roles out of order, as Mistral's templates do.
	strictRoles bool
}

// Faults returns every fault, in the order of the documentation.
func Faults() []Fault { return append([]Fault(nil), faults...) }

func findFault(name string) *Fault {
	for i := range faults {
		if faults[i].Name == name {
			return &faults[i]
		}
	}
	return nil
}

const answered = lathe.ReasonAnswered

var faults = []Fault{
	{Name: "index-missing", Does: "tool calls without index", Ends: answered, style: style{index: noIndex}},
	{Name: "index-minus-one", Does: "every call has index -1", Ends: answered, style: style{index: constIndex("-1")}},
	{Name: "index-repeated", Does: "every call has index 0, with ids of their own", Ends: answered, style: style{index: constIndex("0")}},
	{Name: "index-repeated-no-id", Does: "every call has index 0 and no id", Ends: answered, style: style{index: constIndex("0"), id: noID}},
	{Name: "index-sparse", Does: "indexes 0, 7, 14, …", Ends: answered, style: style{index: func(i int) string { return itoa(7 * i) }}},
	{Name: "index-huge", Does: "indexes from a million on", Ends: answered, style: style{index: func(i int) string { return itoa(1_000_000 + i) }}},
	{Name: "id-missing", Does: "calls without id", Ends: answered, style: style{id: noID}},
	{Name: "id-empty", Does: "id is the empty string", Ends: answered, style: style{id: func(int, int, bool, lathe.ToolCall) (string, bool) { return "", true }}},
	{Name: "id-late", Does: "id only in the last piece of a call", Ends: answered, style: style{id: lateID}},
	{Name: "id-changing", Does: "another id in every piece", Ends: answered, style: style{id: changingID}},
	{Name: "id-repeated", Does: "every call has the same id", Ends: answered, style: style{id: sameID}},
	{Name: "name-repeated", Does: "the whole name in every piece", Ends: answered, style: style{nameEvery: true}},
	{Name: "name-split", Does: "the name in two pieces", Ends: answered, style: style{nameSplit: true}},
	{Name: "name-late", Does: "the name after the arguments", Ends: answered, style: style{nameLate: true}},
	{Name: "type-missing", Does: "calls without type", Ends: answered, style: style{noType: true}},
	{Name: "args-object", Does: "arguments as a JSON object instead of a string", Ends: answered, style: style{args: argsObject}},
	{Name: "args-empty-object-first", Does: "arguments \"{}\" first, then the real ones", Ends: answered, style: style{args: argsBraces}},
	{Name: "args-double-encoded", Does: "arguments are a JSON string that holds the JSON", Ends: answered, style: style{args: argsDouble}},
	{Name: "args-null", Does: "arguments null", Ends: answered, style: style{args: argsNull}},
	{Name: "args-missing", Does: "calls with no arguments member at all", Ends: answered, style: style{args: argsNone}},
	{Name: "one-chunk", Does: "each whole call in one chunk", Ends: answered, style: style{whole: true}},
	{Name: "two-in-one-chunk", Does: "all calls in one chunk", Ends: answered, style: style{whole: true, together: true}},
	{Name: "text-after-calls", Does: "text after the calls", Ends: answered, style: style{textAfter: true}},
	{Name: "text-with-calls", Does: "text and calls in one delta", Ends: answered, style: style{textWith: true}},
	{Name: "finish-stop", Does: "finish_reason stop with calls", Ends: answered, style: style{finish: "stop"}},
	{Name: "finish-empty", Does: "finish_reason is the empty string", Ends: answered, style: style{finish: "\x00"}},
	{Name: "finish-end-turn", Does: "finish_reason end_turn", Ends: answered, style: style{finish: "end_turn"}},
	{Name: "finish-tool-calls", Does: "finish_reason tool_calls without calls", Ends: answered, style: style{finish: "tool_calls"}},
	{Name: "finish-twice", Does: "two chunks with a finish_reason", Ends: answered, style: style{finishTwice: true}},
	{Name: "usage-every-chunk", Does: "cumulative usage in every chunk", Ends: answered, style: style{usageEvery: true}},
	{Name: "no-done", Does: "no [DONE] at the end", Ends: answered, style: style{noDone: true}},
	{Name: "n-choices", Does: "a second choice beside the first", Ends: answered, style: style{secondChoice: true}},
	{Name: "function-call", Does: "the legacy function_call member", Ends: answered, style: style{legacy: true}, turn: oneCall},
	{Name: "reasoning", Does: "thinks in the member reasoning", Ends: answered, style: style{reasoning: "reasoning"}, turn: think},
	{Name: "reasoning-content", Does: "thinks in the member reasoning_content", Ends: answered, style: style{reasoning: "reasoning_content"}, turn: think},
	{Name: "thinking", Does: "thinks in the member thinking", Ends: answered, style: style{reasoning: "thinking"}, turn: think},
	{Name: "crlf", Does: "lines end in CR LF", Ends: answered, style: style{eol: "\r\n"}},
	{Name: "bom", Does: "a byte order mark first", Ends: answered, style: style{bom: true}},
	{Name: "comments", Does: "comments between the events", Ends: answered, style: style{comments: true}},
	{Name: "multi-line-data", Does: "each JSON over several data lines", Ends: answered, style: style{multiline: true}},
	{Name: "long-line", Does: "a line of 100 KiB", Ends: answered, style: style{longLine: 100 << 10}},
	{Name: "malformed-line", Does: "a data line that is no JSON", Ends: answered, style: style{malformed: true}},
	{Name: "json-instead-of-stream", Does: "a JSON completion although a stream was asked for", Ends: answered, nonStream: true},
	{Name: "error-in-band", Does: "an error object in the middle of the stream", Ends: lathe.ReasonUpstreamError, style: style{errorAfter: 3}},
	{Name: "error-in-band-first", Does: "an error object as the first event", Ends: lathe.ReasonUpstreamError, style: style{errorAfter: -1}},
	{Name: "cut-mid-argument", Does: "the connection breaks off inside an argument", Ends: lathe.ReasonUpstreamError, style: style{cutArgs: true}},
	{Name: "cut-mid-text", Does: "the connection breaks off inside the text", Ends: lathe.ReasonUpstreamError, style: style{cutText: true}},
	{Name: "html", Does: "an HTML page under status 200", Ends: lathe.ReasonUpstreamError, status: http.StatusOK, bodyType: "text/html",
		body: "<!doctype html><html><title>502 Bad Gateway</title><h1>Bad Gateway</h1></html>"},
	{Name: "empty-body", Does: "status 200 with an empty body", Ends: lathe.ReasonUpstreamError, status: http.StatusOK, bodyType: "text/event-stream"},
	{Name: "status-400-tools", Does: "400: does not support tools", Ends: lathe.ReasonUpstreamError, status: 400, needsTools: true,
		body: `{"error":{"message":"this model does not support tools","type":"invalid_request_error","param":"tools","code":null}}`},
	{Name: "status-401", Does: "401", Ends: lathe.ReasonUpstreamError, status: 401,
		body: `{"error":{"message":"Incorrect API key provided.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`},
	{Name: "status-404-tools", Does: "404: no endpoints found that support tool use", Ends: lathe.ReasonUpstreamError, status: 404, needsTools: true,
		body: `{"error":{"message":"No endpoints found that support tool use","code":404}}`},
	{Name: "status-408", Does: "408 the first time that a request comes", Ends: answered, status: 408, once: true},
	{Name: "status-429", Does: "429 with Retry-After the first time that a request comes", Ends: answered, status: 429, once: true, header: [2]string{"Retry-After", "0"},
		body: `{"error":{"message":"Rate limit reached","type":"requests","param":null,"code":"rate_limit_exceeded"}}`},
	{Name: "status-429-always", Does: "429 on every request", Ends: lathe.ReasonUpstreamError, status: 429, header: [2]string{"Retry-After", "0"},
		body: `{"error":{"message":"Rate limit reached","type":"requests","param":null,"code":"rate_limit_exceeded"}}`},
	{Name: "status-500", Does: "500 the first time that a request comes", Ends: answered, status: 500, once: true, body: "internal error"},
	{Name: "status-500-always", Does: "500 on every request", Ends: lathe.ReasonUpstreamError, status: 500, body: "internal error"},
	{Name: "status-503", Does: "503 the first time that a request comes", Ends: answered, status: 503, once: true},
	{Name: "strict-roles", Does: "refuses messages whose roles do not alternate, as Mistral's templates do, and leaves answers blank until it is asked again", Ends: answered, strictRoles: true, turn: emptyFinal},
	{Name: "hang", Does: "accepts the request and never answers", Ends: lathe.ReasonUpstreamError, hang: true},
	{Name: "length", Does: "stops for length in the middle of a call", Ends: lathe.ReasonLength, turn: cutByLength},
	{Name: "content-filter", Does: "stops for the content filter", Ends: lathe.ReasonContentFilter, turn: func(_ *lathe.Request, t *Turn) { t.Finish = lathe.FinishContentFilter }},
	{Name: "empty-final", Does: "answers with nothing until it is asked again", Ends: answered, turn: emptyFinal},
	{Name: "unknown-tool", Does: "asks for tools that do not exist, for ever", Ends: lathe.ReasonToolLoop, turn: inventTools},
	{Name: "tool-loop", Does: "repeats the same call for ever", Ends: lathe.ReasonToolLoop, turn: repeatCall},
	{Name: "args-invalid-json", Does: "writes invalid JSON once, then corrects itself", Ends: answered, turn: breakArgs(`{"expression": 7 +`)},
	{Name: "args-duplicate-keys", Does: "writes a key twice once, then corrects itself", Ends: answered, turn: breakArgs(`{"expression":"1","expression":"2"}`)},
	{Name: "args-lone-surrogate", Does: "writes half a surrogate pair once, then corrects itself", Ends: answered, turn: breakArgs(`{"expression":"\ud800"}`)},
	{Name: "args-deep", Does: "nests arguments 1000 deep once, then corrects itself", Ends: answered,
		turn: breakArgsBy(func() string { return `{"expression":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}` })},
	{Name: "args-huge", Does: "writes 300 KB of arguments once, then corrects itself", Ends: answered,
		turn: breakArgsBy(func() string { return `{"expression":"` + strings.Repeat("1", 300_000) + `"}` })},
}

func oneCall(_ *lathe.Request, t *Turn) {
	if len(t.Calls) > 1 {
		t.Calls = t.Calls[:1]
	}
}

func think(_ *lathe.Request, t *Turn) {
	t.Reasoning = "The user asks for something; let me see which tool fits. "
}

// cutByLength ends a turn with calls inside the last one.
func cutByLength(_ *lathe.Request, t *Turn) {
	if n := len(t.Calls); n > 0 {
		t.Calls[n-1].Incomplete = true
		t.Finish = lathe.FinishLength
	}
}

// cutCalls cuts the arguments of calls that are not complete. Calls written as text are cut as text.
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

func inventTools(req *lathe.Request, t *Turn) {
	if len(req.Tools) == 0 {
		return
	}
	n := readConversation(req).total
	t.Text = ""
	t.Calls = []lathe.ToolCall{{ID: "call_" + itoa(n+1), Name: "invented_tool_" + itoa(n+1), Arguments: "{}"}}
}

func repeatCall(req *lathe.Request, t *Turn) {
	if len(req.Tools) == 0 {
		return
	}
	conv := readConversation(req)
	tool := bestTool(conv.prompt, req.Tools)
	if tool == nil {
		tool = req.Tools[0]
	}
	t.Text = ""
	t.Calls = []lathe.ToolCall{{ID: "call_" + itoa(conv.total+1), Name: tool.Name, Arguments: fillArguments(tool, conv.prompt)}}
}

// breakArgs replaces the arguments of the first call of a conversation. After the failed result the
// call is made once more as it should have been.
func breakArgs(args string) func(*lathe.Request, *Turn) {
	return breakArgsBy(func() string { return args })
}

// breakArgsBy is breakArgs with arguments that are too long to lie ready.
func breakArgsBy(args func() string) func(*lathe.Request, *Turn) {
	return func(req *lathe.Request, t *Turn) {
		conv := readConversation(req)
		if len(req.Tools) == 0 {
			return
		}
		plan := makePlan(conv.prompt, req.Tools, req.ToolChoice)
		if len(plan) == 0 {
			return
		}
		call := func(args string) {
			t.Text = ""
			t.Calls = []lathe.ToolCall{{ID: "call_" + itoa(conv.total+1), Name: plan[0].tool.Name, Arguments: args}}
		}
		switch conv.asked {
		case 0:
			call(args())
		case 1:
			call(plan[0].args)
		default:
			conv.results = conv.results[1:]
			*t = Turn{Text: answer(conv)}
		}
	}
}
