package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/builtin"
)

// A toolExchange is one call that reached a tool, and its result.
type toolExchange struct {
	Tool      string          `json:"tool"`
	Arguments string          `json:"arguments"`
	Output    *toolOutput     `json:"output,omitempty"`
	Failure   *toolFailure    `json:"failure,omitempty"`
	Ended     toolEnd         `json:"ended,omitempty"` // set if there is neither Output nor Failure
	State     json.RawMessage `json:"state,omitempty"` // state of the workspace, if the call changed it
}

type toolOutput struct {
	Data    string     `json:"data,omitempty"`
	Bytes   []byte     `json:"bytes,omitempty"` // in place of Data, if the output is not UTF-8
	IsError bool       `json:"is_error,omitempty"`
	Code    lathe.Code `json:"code,omitempty"`
}

type toolFailure struct {
	Code    lathe.Code `json:"code"`
	Message string     `json:"message,omitempty"` // text for the model
	Shown   bool       `json:"told,omitempty"`    // the model receives Message
}

// A toolEnd is how a call without output and failure ended.
type toolEnd string

const (
	endNothing toolEnd = "nothing" // neither an output nor an error
	endCut     toolEnd = "cut"     // the call timed out
	endPanic   toolEnd = "panic"
	endError   toolEnd = "error" // an error without a code
)

// A taped is a tool that records the results of another tool, or replays them without calling that tool. The runner calls it like any other
// tool. It may be called from several goroutines at once.
type taped struct {
	lathe.Tool
	tape *tape
	ws   *builtin.Workspace // nil for a tool without state

	mu    sync.Mutex
	calls []json.RawMessage
}

// counted is a tool that records its calls.
type counted interface {
	lathe.Tool
	Calls() []json.RawMessage
}

var _ counted = (*taped)(nil)

// tool returns the tool for the runner: of itself, or a taped tool that records or replays it.
func (t *tape) tool(of lathe.Tool, ws *builtin.Workspace) lathe.Tool {
	if !t.recording && !t.playsTools {
		return of
	}
	return &taped{Tool: of, tape: t, ws: ws}
}

// Calls returns the arguments of the calls, in order.
func (d *taped) Calls() []json.RawMessage {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.calls)
}

// Call records one call, or replays it.
func (d *taped) Call(ctx context.Context, args json.RawMessage) (out *lathe.Output, err error) {
	d.mu.Lock()
	d.calls = append(d.calls, slices.Clone(args))
	d.mu.Unlock()
	if d.tape.playsTools {
		return d.replay(ctx, args)
	}
	e := toolExchange{Tool: d.Spec().Name, Arguments: string(args), Ended: endPanic}
	defer func() { d.tape.recordCall(e, d.ws) }()
	out, err = d.Tool.Call(ctx, args)
	e.setResult(ctx, out, err)
	return out, err
}

// setResult sets the result of a call.
func (e *toolExchange) setResult(ctx context.Context, out *lathe.Output, err error) {
	e.Ended = ""
	var reported *tool.Failure
	var coded *lathe.Error
	switch {
	case ctx.Err() != nil:
		e.Ended = endCut
	case errors.As(err, &reported):
		e.Failure = &toolFailure{Code: reported.Code, Message: reported.Message, Shown: true}
	case errors.As(err, &coded):
		e.Failure = &toolFailure{Code: coded.Code}
	case err != nil:
		e.Ended = endError
	case out == nil:
		e.Ended = endNothing
	default:
		e.Output = &toolOutput{IsError: out.IsError, Code: out.Code}
		if utf8.Valid(out.Data) {
			e.Output.Data = string(out.Data)
		} else {
			e.Output.Bytes = out.Data
		}
	}
}

// errTaped is wrapped by errors from a recording.
var errTaped = errors.New("the recorded call failed")

// replay returns the recorded result of a call.
func (d *taped) replay(ctx context.Context, args json.RawMessage) (*lathe.Output, error) {
	e := d.tape.nextCall(d.Spec().Name, string(args))
	switch {
	case e == nil:
		return nil, ErrReplay
	case e.Output != nil:
		data := json.RawMessage(e.Output.Data)
		if e.Output.Bytes != nil {
			data = e.Output.Bytes
		}
		return &lathe.Output{Data: data, IsError: e.Output.IsError, Code: e.Output.Code}, nil
	case e.Failure != nil && e.Failure.Shown:
		return nil, &tool.Failure{Code: e.Failure.Code, Message: e.Failure.Message}
	case e.Failure != nil:
		return nil, e.Failure.Code.Wrap("eval: replay", errTaped)
	case e.Ended == endCut:
		<-ctx.Done() // the runner reports the time to the model
		return nil, ctx.Err()
	case e.Ended == endPanic:
		panic("eval: the recorded call panicked")
	case e.Ended == endNothing:
		return nil, nil //nolint:nilnil // as the tool did
	default:
		return nil, errTaped
	}
}

// recordCall records a call that has ended.
func (t *tape) recordCall(e toolExchange, ws *builtin.Workspace) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.saved {
		return // the run did not wait for this call
	}
	if ws != nil {
		if now, err := ws.Snapshot(); err == nil && !rawjson.Equal(now, t.state) {
			e.State, t.state = now, now
		}
	}
	t.Tools = append(t.Tools, e)
}

// nextCall returns the first recorded call that equals this one and has not been replayed yet. If none exists, it returns nil and ends
// the replay.
func (t *tape) nextCall(name, args string) *toolExchange {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.Tools {
		if e := &t.Tools[i]; !t.played[i] && e.Tool == name && e.Arguments == args {
			t.played[i] = true
			if e.State != nil {
				t.state = rawjson.AppendCompact(nil, e.State)
			}
			return e
		}
	}
	if t.broken == nil {
		t.broken = fmt.Errorf("%w: this call of %s is not in %s", ErrReplay, name, filepath.Base(t.path))
	}
	return nil
}

// stateAt returns the value at the pointer of the workspace, or null. If the recording replaces the tools of the workspace, it reads the
// recorded state.
func (t *tape) stateAt(ws *builtin.Workspace, pointer string) (json.RawMessage, error) {
	all, err := ws.Snapshot()
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	if t.playsTools {
		all = t.state
	}
	t.mu.Unlock()
	if raw, ok := valueAt(all, pointer); ok {
		return slices.Clone(raw), nil
	}
	return json.RawMessage("null"), nil
}

// missed returns the first request or call that the recording did not contain, as an error, or nil.
func (t *tape) missed() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.broken
}
