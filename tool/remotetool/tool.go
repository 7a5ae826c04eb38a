package remotetool

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/remote"
	"github.com/lathe-run/lathe/tool"
)

var _ tool.OutcomeChecker = (*offered)(nil)

// offered is a tool that workers serve.
type offered struct {
	catalogue  *Catalogue
	spec       lathe.ToolSpec
	definition string
	bad        string // error of its definition; "": none
}

func newOffered(c *Catalogue, t *remote.Tool, definition string) *offered {
	o := &offered{catalogue: c, definition: definition, spec: lathe.ToolSpec{Name: t.Name, Description: t.Description, Schema: t.Schema,
		OutputSchema: t.OutputSchema, Effect: effect(t.Effect), Allowlist: t.Allowlist, Target: t.Target, Labels: t.Labels,
		SchemaVersion: t.Version, Timeout: time.Duration(t.TimeoutMS) * time.Millisecond, Origin: origin, Principals: t.Principals}}
	if _, err := tool.NewSet(o); err != nil {
		o.bad = reason(err)
	}
	return o
}

// effect returns the effect with this name, or lathe.Writes for an unknown name.
func effect(name string) lathe.Effect {
	for _, e := range []lathe.Effect{lathe.ReadOnly, lathe.Idempotent} {
		if name == e.String() {
			return e
		}
	}
	return lathe.Writes
}

// Spec implements [lathe.Tool].
func (o *offered) Spec() *lathe.ToolSpec { return &o.spec }

// Call implements [lathe.Tool]. It adds the call to the queue, unless another process has already done so, and waits for its end.
func (o *offered) Call(ctx context.Context, args json.RawMessage) (*lathe.Output, error) {
	c := &remote.Call{Tool: o.spec.Name, Definition: o.definition, Effect: o.spec.Effect, Arguments: args, Trace: event.TraceFrom(ctx)}
	if m := lathe.CallMetaFrom(ctx); m != nil {
		c.Key, c.RunID, c.CallID, c.RequestID, c.SessionID, c.Depth = m.IdempotencyKey, m.RunID, m.CallID, m.RequestID, m.SessionID, m.Depth
	}
	if c.Key == "" || c.RunID == "" { // keys of runs without an id are not unique
		c.Key, c.RunID = "call_"+rand.Text(), "run_"+rand.Text()
	}
	woken, stop := o.catalogue.watch(c.Key)
	defer stop()
	row, err := o.catalogue.put(ctx, c, woken)
	if err != nil {
		if lathe.CodeOf(err) == lathe.CodeConflict {
			return nil, lathe.CodeInterrupted.Wrap("remote: call", err) // another process has queued the call with other arguments
		}
		return nil, err
	}
	if row, err = o.catalogue.await(ctx, row, woken); err != nil {
		return nil, err
	}
	return outcome(row)
}

// CheckOutcome implements [tool.OutcomeChecker]. It waits for a call in progress.
func (o *offered) CheckOutcome(ctx context.Context, m *lathe.CallMeta) (tool.Recovery, error) {
	woken, stop := o.catalogue.watch(m.IdempotencyKey)
	defer stop()
	row, err := o.catalogue.find(ctx, m.IdempotencyKey, woken)
	switch {
	case errors.Is(err, lathe.ErrNotFound):
		return tool.Recovery{Outcome: tool.RecoveryNotRun}, nil
	case err != nil:
		return tool.Recovery{}, err
	}
	if row, err = o.catalogue.await(ctx, row, woken); err != nil {
		return tool.Recovery{}, err
	}
	out, err := outcome(row)
	if row.State == remote.Unknown {
		return tool.Recovery{}, err
	}
	if err != nil {
		out = &lathe.Output{IsError: true, Code: codeOf(err)}
	}
	return tool.Recovery{Outcome: tool.RecoveryDone, Output: out}, nil
}

func codeOf(err error) lathe.Code {
	if f, ok := errors.AsType[*tool.Failure](err); ok {
		return f.Code
	}
	return lathe.CodeOf(err)
}

// outcome converts the row of an ended call to the output or the error of the tool.
func outcome(row *remote.Call) (*lathe.Output, error) {
	const op = "remote: call"
	switch {
	case row.State == remote.Unknown:
		return nil, lathe.CodeInterrupted.Errorf(op, "its worker was lost, and the outcome of the call is unknown")
	case row.State == remote.Cancelled && row.Cancelled:
		return nil, lathe.CodeCancelled.Errorf(op, "the call was cancelled")
	case row.State == remote.Cancelled && row.Attempt == 0:
		return nil, lathe.CodeUnavailable.Errorf(op, "no worker has taken the call in its time")
	case row.State == remote.Cancelled:
		return nil, lathe.CodeTimeout.Errorf(op, "its time is up")
	case row.Result == nil:
		return nil, lathe.CodeInternal.Errorf(op, "a call that is done has no result")
	case row.Result.IsError && row.Result.Detail != "" && row.Result.Data == nil:
		return nil, tool.Fail(row.Result.Code, "%s", row.Result.Detail)
	}
	r := row.Result
	return &lathe.Output{Data: r.Data, Blobs: r.Blobs, IsError: r.IsError, Code: r.Code, RC: r.RC}, nil
}
