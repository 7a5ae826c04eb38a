package mcptool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/schema"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/tool"
)

// readyWait is the maximum time that a call waits for a server that is being started.
const readyWait = 5 * time.Second

// remote is one tool of a server.
type remote struct {
	s      *supervisor
	name   string // the server's name of the tool
	digest string
	marks  []mark
	spec   lathe.ToolSpec
}

// Spec returns the definition.
func (t *remote) Spec() *lathe.ToolSpec { return &t.spec }

var errIdle = errors.New("no progress within the idle timeout")

// Call calls the tool of the server. The error has the code `unavailable` if the server cannot be reached, or if it ended before a tool
// that is read-only or idempotent answered; `interrupted` if the outcome of a tool that writes is unknown; and `timeout` if the server sent
// no progress within the idle timeout.
func (t *remote) Call(ctx context.Context, args json.RawMessage) (*lathe.Output, error) {
	if len(args) == 0 {
		args = json.RawMessage(`{}`)
	}
	pauses := newBackoff(firstPause, 0)
	for attempt := 1; ; attempt++ {
		conn, err := t.s.ready(ctx, t)
		if err != nil {
			return nil, err
		}
		out, unanswered, err := t.callOn(ctx, conn, args)
		conn.release()
		if unanswered == nil {
			return out, err
		}
		wait, again := unanswered.again(t.spec.Effect, attempt)
		if unanswered.refusal == tooSoon && wait == 0 {
			wait = pauses.next()
		}
		if !again || !t.s.opts.waitFor(ctx, wait) {
			return out, err
		}
	}
}

// callOn sends the call over one connection, and again with the answers if the server asks questions. If there was no answer, it also
// returns the state of the request.
func (t *remote) callOn(ctx context.Context, conn *session, args json.RawMessage) (*lathe.Output, *request, error) {
	params := mcp.CallToolParams{Name: t.name, Arguments: args}
	for round := 1; ; round++ {
		got, cause := t.send(ctx, conn, params)
		if round > 1 { // the server has begun to handle the call in an earlier round
			got.sent, got.unhandled = true, false
		}
		kind := got.reply()
		switch kind {
		case noResult:
			return t.failed(ctx, cause, conn, got)
		case completeResult:
			out, err := output(got.result)
			if err != nil {
				err = lathe.CodeInvalidOutput.Wrap(t.op(), err)
			}
			return out, nil, err
		}
		if round == maxRounds {
			return declined(&inputError{fmt.Sprintf("the server asked for input %d times in the middle of the call and gave no result: do not repeat the call", maxRounds)}), nil, nil
		}
		var err error
		if kind == needsVisit {
			err = t.s.askToOpen(ctx, got.fault)
		} else {
			params.InputResponses, params.RequestState, err = t.s.inputs(ctx, conn, got.result)
		}
		if e, ok := errors.AsType[*inputError](err); ok {
			return declined(e), nil, nil
		}
		if errors.Is(err, errNoResult) {
			err = lathe.CodeInvalidOutput.Wrap(t.op(), err)
		}
		if err != nil {
			return nil, nil, err
		}
	}
}

// A reply is the kind of the answer to a call.
type reply int

const (
	noResult       reply = iota // an error, or no answer
	completeResult              // the result of the tool
	needsVisit                  // the user must visit a URL first
	needsInput                  // the server asks questions, as in protocol version 2026-07-28
)

func (r *request) reply() reply {
	switch {
	case r.result == nil && string(rawjson.At(r.fault, "code")) == codeURLRequired:
		return needsVisit
	case r.result == nil:
		return noResult
	case rawjson.TextAt(r.result, "resultType") == "input_required":
		return needsInput
	}
	return completeResult
}

// send sends a call once. It returns the state of the request, and the cause if it was cut off.
func (t *remote) send(ctx context.Context, conn *session, params mcp.CallToolParams) (*request, error) {
	callCtx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	defer context.AfterFunc(conn.life, func() { cut(errLost) })()
	idle := newIdleTimer(t.s.conf.IdleTimeout, func() bool {
		if conn.tap.isIdleSuspended() {
			return false
		}
		cut(errIdle)
		return true
	})
	defer idle.stop()
	r := &request{stub: true, cut: cut, tool: t.spec.Name, asker: tool.AskerFrom(ctx), marks: t.marks}
	r.progress = func(params []byte) {
		idle.reset()
		t.report(callCtx, params)
	}
	if len(t.marks) > 0 {
		r.arguments, _ = params.Arguments.(json.RawMessage)
	}
	watched := conn.tap.watch(callCtx, r)
	params.Meta = mcp.Meta{"progressToken": r.token}
	if m := lathe.CallMetaFrom(ctx); m != nil && m.IdempotencyKey != "" {
		params.Meta["run.lathe/idempotencyKey"] = m.IdempotencyKey
	}
	if t := event.TraceFrom(ctx); t.Parent != "" {
		params.Meta["traceparent"] = t.Parent
		if t.Baggage != "" {
			params.Meta["baggage"] = t.Baggage
		}
	}
	// The state in the tap has more detail than the error.
	_, _ = conn.mcp.CallTool(watched, &params)
	conn.tap.forget(r)
	got := conn.tap.state(r)
	if got.result != nil {
		t.s.authorized()
	}
	got.result, got.fault = t.s.withoutTokens(got.result), t.s.withoutTokens(got.fault)
	return &got, context.Cause(callCtx)
}

// report passes the params of a progress notification on, if they have a number, without the tokens of the server's authorization.
func (t *remote) report(ctx context.Context, params []byte) {
	done, err := strconv.ParseFloat(string(rawjson.At(params, "progress")), 64)
	if err != nil {
		return
	}
	total, _ := strconv.ParseFloat(string(rawjson.At(params, "total")), 64) // 0: it is missing
	tool.ReportProgress(ctx, done, total, rawjson.TextAt(t.s.withoutTokens(params), "message"))
}

func (t *remote) op() string { return "mcp: call " + t.spec.Name }

// failed returns the output or the error of a call without a result. It also returns its request if there was no answer.
func (t *remote) failed(ctx context.Context, cause error, conn *session, got *request) (*lathe.Output, *request, error) {
	switch {
	case errors.Is(got.err, errUnreadable):
		return nil, nil, lathe.CodeInvalidOutput.Wrap(t.op(), got.err)
	case errors.Is(got.err, errTooLong):
		return nil, nil, tool.Fail(lathe.CodeOutputTooLarge, "the answer of the server has more than %d bytes", t.s.conf.MaxLineBytes)
	case errors.Is(cause, errIdle):
		return nil, nil, tool.Fail(lathe.CodeTimeout, "the server sent nothing for %s", t.s.conf.IdleTimeout)
	case ctx.Err() != nil:
		return nil, nil, ctx.Err()
	}
	switch {
	case len(got.fault) > 0:
		return errorOutput(got.fault), nil, nil
	case got.refused != nil:
		return nil, nil, tool.Fail(t.lostCode(got), "the server %s %s", t.s.conf.Name, t.s.unauthorized(got.refused))
	case got.refusal.needsSession():
		conn.lose()
	case got.status == http.StatusTooManyRequests: // the connection is still usable
	default:
		conn.stop() // so that a new connection is made
	}
	return nil, got, t.lostCode(got).Wrap(t.op(), &tool.CauseError{Cause: lostBy(got)})
}

// lostBy returns the reason why a call got no answer.
func lostBy(got *request) string {
	switch {
	case got.refusal.needsSession():
		return errSessionLost.Error()
	case got.status != 0:
		return fmt.Sprintf("the server answered HTTP %d", got.status)
	case !got.sent:
		return "the server could not be reached"
	}
	return errLost.Error()
}

// errorOutput returns the output for a JSON-RPC error. The model receives its message, which may say how to correct the call.
func errorOutput(fault []byte) *lathe.Output {
	out := &lathe.Output{IsError: true}
	if string(rawjson.At(fault, "code")) == "-32602" { // invalid params
		out.Code = lathe.CodeInvalidArguments
	}
	message, _ := clean(cmp.Or(rawjson.Text(fault), rawjson.TextAt(fault, "message"))) // some servers send only the message, as a string
	out.Data = append(appendMember([]byte{'{'}, "error", text.Clip(message, maxMessage)), '}')
	return out
}

var errLost = errors.New("the server ended or could not be reached")

// maxMessage is the maximum length of an error text of a server, in bytes.
const maxMessage = 4 << 10

// lostCode returns the code of a call that will get no answer.
func (t *remote) lostCode(got *request) lathe.Code {
	if !got.sent || got.unhandled || mayRepeat(t.spec.Effect) {
		return lathe.CodeUnavailable
	}
	return lathe.CodeInterrupted
}

// newRemote returns the tool for a definition.
func newRemote(s *supervisor, d *definition) *remote {
	c := &s.conf
	t := &remote{s: s, name: d.name, digest: d.digest, marks: d.marks}
	t.spec = lathe.ToolSpec{
		Name: c.toolName(d.name), Description: d.description, Schema: schema.Typed(d.schema), OutputSchema: d.output,
		Effect: c.Effects[d.name], Allowlist: c.Allowlist, SchemaVersion: d.digest[:12], Timeout: c.CallTimeout,
		Concurrency: c.Concurrency, Backend: c.origin(), Origin: c.origin(), UncheckedParts: d.unchecked,
	}
	if list, ok := c.Allowlists[d.name]; ok {
		t.spec.Allowlist = list
	}
	return t
}
