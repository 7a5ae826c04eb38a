package gateway

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/visible"
	"github.com/lathe-run/lathe/internal/wire/openai"
	"github.com/lathe-run/lathe/loop"
)

// A chat is one request for a chat completion, and what its client is told: the encoder of its stream.
type chat struct {
	gateway *Gateway
	caller  *caller
	req     *openai.ChatRequest
	body    []byte // of the request
	job     job
	// in, with settings and limits, is that of job; it lies here to be made with the rest.
	in       loop.Input
	settings lathe.Settings
	limits   lathe.Limits
	base     int             // messages of the run's history that were there before it
	sum      conversationSum // of the conversation as the client has it
	after    keptKey         // of the last turn that was put in its place in it
	lost     int             // turns of it that could not be put in their place
	created  int64
	ignored  []string       // members of the request that have no effect
	passed   []lathe.Member // those that the model server gets

	session string
	id      string              // of the completion
	chunks  *openai.ChunkWriter // nil: its client does not stream
	calls   *handover
	alone   bool         // the answer is one JSON text: the client gets the text of the last turn alone
	said    bool         // some text was shown
	before  []lathe.Part // is shown first, of the run that this one continues
	turn    int          // in which it was
	last    int64        // id of the last event that was told
	follows bool         // the run is executed elsewhere: what was not streamed here is taken from its log
	told    string       // while it follows: the text of the turn that was shown

	server string     // the flag by which the command line reaches this server
	equal  requestSum // of the request
	fresh  bool       // the client asks for a run of its own

	plain   bool   // the request has no object `lathe`, so that none is expected in the answer
	relayed bool   // the client has got bytes of the model server
	mends   bool   // and gets no more of them
	whole   []byte // of the model server, to a client that does not stream

	finished bool // among those bytes was the finish reason

	continues string // the run that the run continues

	unlock func() // lets others at the run that it goes on with; it may be called twice
}

func toolParam(i int) string { return "tools[" + strconv.Itoa(i) + "].function.name" }

// between stands between the texts of two turns, which the client sees as one message.
const between = "\n\n"

func (a *chat) appendEvent(dst []byte, e *lathe.Event) []byte {
	a.unlock()
	a.last = max(a.last, e.ID)
	if a.relayed {
		return dst // appendRaw has said it
	}
	switch d := e.Data.(type) {
	case *lathe.TextDelta:
		return a.live(dst, e.Turn, d.Text)
	case *lathe.CommentaryDelta:
		return a.live(dst, e.Turn, d.Text)
	case *lathe.ReasoningDelta:
		dst = a.start(dst)
		return a.chunks.AppendDelta(dst, lathe.Delta{Kind: lathe.DeltaReasoning, Text: d.Text})
	case *lathe.ToolCallDelta:
		if len(a.calls.names) > 0 {
			dst = a.start(dst)
		}
		return a.calls.appendPiece(dst, e.Turn, d)
	case *lathe.ModelCallFinished:
		if d.Message == nil {
			return dst
		}
		if a.follows && !a.alone {
			dst = a.appendRest(dst, e.Turn, d.Message)
		}
		return a.calls.appendWhole(dst, d.Message)
	case *lathe.ToolCallPlanned:
		a.calls.planned++
		return dst
	default: // is not shown
		return dst
	}
}

// live appends text as the model writes it, unless the client gets the text of one turn alone: which turn that is, is
// known at the end.
func (a *chat) live(dst []byte, turn int, text string) []byte {
	if a.alone {
		return dst
	}
	return a.text(dst, turn, text)
}

// start says what the run took over, before anything else.
func (a *chat) start(dst []byte) []byte {
	before := a.before
	a.before = nil
	for _, p := range before {
		switch p := p.(type) {
		case lathe.Text:
			dst = a.live(dst, 0, p.Text)
		case lathe.Reasoning:
			dst = a.chunks.AppendDelta(dst, lathe.Delta{Kind: lathe.DeltaReasoning, Text: p.Text})
		case lathe.Refusal, lathe.Blob, lathe.ToolCall, lathe.ToolResult: // no part of a stream's text
		}
	}
	return dst
}

func (a *chat) text(dst []byte, turn int, text string) []byte {
	if text == "" {
		return dst
	}
	dst = a.start(dst)
	if a.said && a.turn != turn {
		dst = a.chunks.AppendDelta(dst, lathe.Delta{Kind: lathe.DeltaText, Text: between})
	}
	if a.turn != turn {
		a.told = ""
	}
	if a.said, a.turn = true, turn; a.follows {
		a.told += text
	}
	return a.chunks.AppendDelta(dst, lathe.Delta{Kind: lathe.DeltaText, Text: text})
}

func (a *chat) appendEnd(dst []byte, res *lathe.Result, p *problem) []byte {
	if p != nil {
		return openai.AppendErrorFrame(dst, p.wire())
	}
	a.noteReasoning(res)
	if a.asItCame(res) {
		return dst
	}
	if a.alone && !a.relayed {
		for _, p := range a.shown(res.History[min(a.base, len(res.History)):]) {
			if t, ok := p.(lathe.Text); ok {
				dst = a.text(dst, len(res.Trace), t.Text)
			}
		}
	}
	dst = a.start(dst)
	if !a.said && res.Answer != "" { // of a model that told it only whole
		dst = a.text(dst, len(res.Trace), res.Answer)
	}
	if wait := a.waitingFor(res); wait != "" {
		dst = a.text(dst, len(res.Trace)+1, wait)
	}
	f := a.finish(res, false)
	if !a.relayed {
		dst = a.calls.appendAll(dst, f.Message.Calls())
		f.Message.Parts = nil
	}
	dst = a.chunks.AppendFinish(dst, f, a.extra(res))
	return a.chunks.AppendDone(dst)
}

// finish is the message that the client sees in place of all turns: the text of all of them, and the
// calls that it is to execute. Without whole it has the calls alone.
func (a *chat) finish(res *lathe.Result, whole bool) *lathe.Finish {
	f := &lathe.Finish{Usage: res.Usage, Reason: lathe.FinishStop}
	if res.Reason != lathe.ReasonAwaitingApproval && a.equal != (requestSum{}) {
		a.gateway.kept.remove(a.equal.key()) // an equal request from now on begins a run of its own
	}
	if res.Cost > 0 {
		f.ProviderCost = &res.Cost
	}
	if n := len(res.Trace); n > 1 && !a.gateway.opts.SumUsage { // clients take it for the size of their conversation
		f.Usage, f.ProviderCost = res.Trace[n-1].Usage, nil
	}
	f.Message.Role = lathe.RoleAssistant
	own := res.History[min(a.base, len(res.History)):]
	if whole {
		f.Message.Parts = withParagraph(a.shown(own), a.waitingFor(res))
	}
	switch res.Reason {
	case lathe.ReasonClientToolCalls, lathe.ReasonAwaitingApproval, lathe.ReasonAwaitingToolResults:
		calls := a.theirs(res.Pending)
		if len(calls) == 0 {
			break
		}
		f.Reason = lathe.FinishToolCalls
		for _, call := range calls {
			f.Message.Parts = append(f.Message.Parts, a.calls.handed(call))
		}
		waits := ""
		if res.Reason != lathe.ReasonClientToolCalls {
			waits = a.caller.runID
		}
		a.gateway.kept.putLinked(a.sum.key(calls), linkOf(a.keeper(), a.after, calls, own), waits, loop.KeptHistory(own, a.job.loop.Retention()))
	case lathe.ReasonLength:
		f.Reason = lathe.FinishLength
	case lathe.ReasonContentFilter:
		f.Reason = lathe.FinishContentFilter
	default:
		if res.Reason.Status() == "limited" && res.Answer == "" {
			f.Reason = lathe.FinishLength
		}
	}
	return f
}

// withParagraph returns the parts with a paragraph more at the end of their text.
func withParagraph(parts []lathe.Part, text string) []lathe.Part {
	if text == "" {
		return parts
	}
	for i, p := range parts {
		if t, ok := p.(lathe.Text); ok {
			parts[i] = lathe.Text{Text: t.Text + between + text}
			return parts
		}
	}
	return append(parts, lathe.Text{Text: text})
}

// theirs returns those of the calls that the client is to execute.
func (a *chat) theirs(calls []lathe.ToolCall) []lathe.ToolCall {
	if a.job.in != nil && a.job.in.Relay != nil {
		return calls
	}
	return slices.DeleteFunc(slices.Clone(calls), func(call lathe.ToolCall) bool {
		return !a.calls.names[strings.ReplaceAll(call.Name, ".", "_")] && !a.calls.names[call.Name]
	})
}

func (a *chat) keeper() keeper { return keeper{a.caller.key.Name, a.req.User, a.req.Model} }

// shown returns the text, reasoning and refusals of messages, as a stream would have told them.
func (a *chat) shown(messages []lathe.Message) []lathe.Part {
	var text, reasoning strings.Builder
	var rest []lathe.Part
	for i := range messages {
		if messages[i].Role == lathe.RoleTool && a.settings.Executor == lathe.ExecutorNoop {
			appendCanned(&text, &messages[i])
		}
		if messages[i].Role != lathe.RoleAssistant {
			continue
		}
		if a.alone {
			text.Reset()
		}
		began := false
		for _, p := range visible.Parts(&messages[i]) {
			switch p := p.(type) {
			case lathe.Text:
				if p.Text == "" || a.alone && p.Commentary {
					continue
				}
				if !began && text.Len() > 0 {
					text.WriteString(between)
				}
				began = true
				text.WriteString(p.Text)
			case lathe.Reasoning:
				reasoning.WriteString(p.Text)
			case lathe.Refusal:
				rest = append(rest, p)
			case lathe.Blob, lathe.ToolCall, lathe.ToolResult:
			}
		}
	}
	var parts []lathe.Part
	if reasoning.Len() > 0 {
		parts = append(parts, lathe.Reasoning{Text: reasoning.String()})
	}
	if text.Len() > 0 {
		parts = append(parts, lathe.Text{Text: text.String()})
	}
	return append(parts, rest...)
}

// appendCanned adds the results that the noop executor gave, which the stream shows as commentary.
func appendCanned(text *strings.Builder, m *lathe.Message) {
	for _, p := range m.Parts {
		if res, ok := p.(lathe.ToolResult); ok && !res.IsError {
			text.WriteString(res.Content)
		}
	}
}

// A report is the object `lathe` of an answer: how the run went. It holds no argument and no output.
type report struct {
	RunID     string       `json:"run_id"`
	RequestID string       `json:"request_id"`
	Session   string       `json:"session,omitempty"`
	Continues string       `json:"continues,omitempty"` // the run whose calls and results the run took over
	Reason    lathe.Reason `json:"reason"`
	ToolCalls []callReport `json:"tool_calls"` // of this server, executed or refused
	Turns     []turnReport `json:"turns"`
	LostJoins int          `json:"lost_joins,omitempty"` // turns whose calls and results of this server the model does not see
	Usage     lathe.Usage  `json:"usage"`                // of all model calls
	Cost      float64      `json:"cost,omitempty"`       // in US dollars, of all model calls whose server says it
	Pending   []string     `json:"pending,omitempty"`    // the calls that wait
	Ignored   []string     `json:"ignored,omitempty"`    // members of the request that had no effect
	Passed    []string     `json:"passed,omitempty"`     // those that the model server got although nobody here knows them
}

type callReport struct {
	Turn int `json:"turn"`
	lathe.CallTrace
}

type turnReport struct {
	Turn   int                `json:"turn"`
	Model  string             `json:"model"`
	Finish lathe.FinishReason `json:"finish_reason"`
	Usage  lathe.Usage        `json:"usage"`
}

func (a *chat) extra(res *lathe.Result) []lathe.Member {
	r := report{RunID: a.caller.runID, RequestID: a.caller.requestID, Session: a.session, Continues: a.continues, Reason: res.Reason,
		ToolCalls: []callReport{}, Turns: []turnReport{}, LostJoins: a.lost, Usage: res.Usage, Cost: res.Cost, Ignored: a.ignored, Passed: a.passedNames()}
	client := map[string]bool{}
	for _, t := range a.req.Tools {
		client[t.Name] = true
	}
	for i := range res.Trace {
		t := &res.Trace[i]
		r.Turns = append(r.Turns, turnReport{t.Turn, t.Model, t.Finish, t.Usage})
		for _, call := range t.Calls {
			if !client[call.Tool] {
				r.ToolCalls = append(r.ToolCalls, callReport{t.Turn, call})
			}
		}
	}
	for _, call := range res.Pending {
		r.Pending = append(r.Pending, call.ID)
	}
	raw, err := json.Marshal(&r)
	if err != nil {
		return nil // it is numbers and words
	}
	return []lathe.Member{{Name: "lathe", Value: raw}}
}
