package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/tool"
)

// A notifier numbers the events of one call from 1, emits them to the sinks in order, and sends them to the client if it has requested log
// messages. It is used by one goroutine at a time.
type notifier struct {
	call  *runnerCall
	t     *tenant
	ctx   context.Context
	info  *lathe.RunInfo
	began time.Time
	n     int64
}

func (rc *runnerCall) newNotifier(ctx context.Context, info *lathe.RunInfo) *notifier {
	return &notifier{call: rc, t: rc.t, ctx: ctx, info: info, began: rc.t.s.opts.Now()}
}

// start emits RunStarted, the first event of the run.
func (n *notifier) start(specs []*lathe.ToolSpec, opts *tool.RunOptions, msg lathe.Message) {
	limits := opts.Limits.WithDefaults()
	mode, failure := cmp.Or(opts.Settings.ToolUseMode, lathe.ModeRelaxed), cmp.Or(opts.Settings.FailurePolicy, lathe.FailureFatal)
	n.emit(0, &event.RunStarted{
		Provider: "mcp", Dialect: "native", ToolUseMode: mode, FailurePolicy: failure,
		Tools: n.t.digest(specs),
		Limits: event.LimitsView{MaxIterations: limits.MaxIterations, MaxToolCalls: limits.MaxToolCalls, MaxToolArgsBytes: limits.MaxToolArgsBytes,
			MaxOutputBytes: limits.MaxOutputBytes, RunTimeoutMS: max(limits.RunTimeout, 0).Milliseconds()},
		Messages: []lathe.Message{msg}, Principal: n.info.Principal, Profile: n.info.Profile, Labels: n.info.Labels,
	})
}

// event emits one event of the call to the sinks and sends it to the client as a log message.
func (n *notifier) event(d event.Data) {
	n.emit(1, d)
	n.log(d)
}

// finish emits RunFinished, the last event of the run. A failed call also has a result.
func (n *notifier) finish(ctx context.Context, r *lathe.ToolResult) {
	reason := lathe.ReasonAnswered
	if r.Code == lathe.CodeCancelled || ctx.Err() != nil {
		reason = lathe.ReasonCancelled
	}
	n.emit(1, &event.RunFinished{Reason: reason, Status: reason.Status(), Turns: 1, ToolCalls: 1,
		LatencyMS: n.t.s.opts.Now().Sub(n.began).Milliseconds(), ErrorCode: string(r.Code), Answer: r.Content})
}

func (n *notifier) emit(turn int, d event.Data) {
	n.n++
	e := event.Event{ID: n.n, Time: n.t.s.opts.Now(), RunID: n.info.RunID, RequestID: n.info.RequestID, SessionID: n.info.SessionID, Turn: turn, Data: d}
	for _, s := range n.t.s.opts.Sinks {
		n.emitTo(s, e)
	}
}

// emitTo emits an event to one sink. If the sink panics, the panic is logged and the other sinks still receive the event.
func (n *notifier) emitTo(s event.Sink, e event.Event) {
	defer func() {
		if recover() != nil {
			n.t.s.opts.Log.Warn("a sink panicked", "run_id", e.RunID, "type", e.Data.EventType())
		}
	}()
	s.Emit(n.ctx, e)
}

// log sends the client one event of its call. Arguments and output are not included.
func (n *notifier) log(d event.Data) {
	at, session, _ := n.call.client.now()
	if session == nil {
		return
	}
	level := mcp.LoggingLevel("info") //nolint:staticcheck // deprecated from 2026-07-28 on, and asked for in both eras
	if r, ok := d.(*event.ToolCallResult); ok && r.Status != "ok" {
		level = "warning"
	}
	body, err := json.Marshal(d)
	if err != nil {
		return
	}
	// An error means that the client has closed the connection.
	_ = session.Log(at, &mcp.LoggingMessageParams{Level: level, Logger: "lathe", //nolint:staticcheck // deprecated from 2026-07-28 on, and asked for in both eras
		Data: map[string]any{"type": d.EventType(), "run_id": n.info.RunID, "data": json.RawMessage(body)}})
}
