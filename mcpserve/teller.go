package mcpserve

import (
	"context"
	"encoding/json"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/tool"
)

// A teller makes the events of one call a run's: numbered from 1, told to the sinks in order, and
// to the client that has asked for log messages. It is used by one goroutine at a time.
type teller struct {
	e     *errand
	t     *tenant
	ctx   context.Context
	info  *lathe.RunInfo
	began time.Time
	n     int64
}

func (e *errand) newTeller(ctx context.Context, info *lathe.RunInfo) *teller {
	return &teller{e: e, t: e.t, ctx: ctx, info: info, began: e.t.s.opts.Now()}
}

// start tells that the run of the call begins.
func (l *teller) start(specs []*lathe.ToolSpec, opts *tool.RunOptions, msg lathe.Message) {
	limits := opts.Limits.WithDefaults()
	mode, failure := opts.Settings.ToolUseMode, opts.Settings.FailurePolicy
	if mode == "" {
		mode = lathe.ModeRelaxed
	}
	if failure == "" {
		failure = lathe.FailureFatal
	}
	l.emit(0, &lathe.RunStarted{
		Provider: "mcp", Dialect: "native", ToolUseMode: mode, FailurePolicy: failure,
		Tools: l.t.digest(specs),
		Limits: lathe.LimitsView{MaxIterations: limits.MaxIterations, MaxToolCalls: limits.MaxToolCalls, MaxToolArgsBytes: limits.MaxToolArgsBytes,
			MaxOutputBytes: limits.MaxOutputBytes, RunTimeoutMS: max(limits.RunTimeout, 0).Milliseconds()},
		Messages: []lathe.Message{msg}, Principal: l.info.Principal, Labels: l.info.Labels,
	})
}

// event tells one fact of the call.
func (l *teller) event(d lathe.EventData) {
	l.emit(1, d)
	l.log(d)
}

// finish tells that the run of the call is over. A call that failed is an answer, too.
func (l *teller) finish(ctx context.Context, r *lathe.ToolResult) {
	reason := lathe.ReasonAnswered
	if r.Code == lathe.CodeCancelled || ctx.Err() != nil {
		reason = lathe.ReasonCancelled
	}
	l.emit(1, &lathe.RunFinished{Reason: reason, Status: reason.Status(), Turns: 1, ToolCalls: 1,
		LatencyMS: l.t.s.opts.Now().Sub(l.began).Milliseconds(), ErrorCode: string(r.Code), Answer: r.Content})
}

func (l *teller) emit(turn int, d lathe.EventData) {
	l.n++
	e := lathe.Event{ID: l.n, Time: l.t.s.opts.Now(), RunID: l.info.RunID, RequestID: l.info.RequestID, SessionID: l.info.SessionID, Turn: turn, Data: d}
	for _, s := range l.t.s.opts.Sinks {
		l.tell(s, e)
	}
}

// tell tells one sink. One that panics is logged, and the others are told.
func (l *teller) tell(s lathe.Sink, e lathe.Event) {
	defer func() {
		if recover() != nil {
			l.t.s.opts.Log.Warn("a sink panicked", "run_id", e.RunID, "type", e.Data.EventType())
		}
	}()
	s.Emit(l.ctx, e)
}

// log shows the client the facts of its own call: what is free of arguments and output, no more.
func (l *teller) log(d lathe.EventData) {
	at, session, _ := l.e.told.now()
	if session == nil {
		return
	}
	level := mcp.LoggingLevel("info") //nolint:staticcheck // deprecated from 2026-07-28 on, and asked for in both eras
	if r, ok := d.(*lathe.ToolCallResult); ok && r.Status != "ok" {
		level = "warning"
	}
	facts, err := json.Marshal(d)
	if err != nil {
		return
	}
	// Who is gone need not know.
	_ = session.Log(at, &mcp.LoggingMessageParams{Level: level, Logger: "lathe", //nolint:staticcheck // deprecated from 2026-07-28 on, and asked for in both eras
		Data: map[string]any{"type": d.EventType(), "run_id": l.info.RunID, "data": json.RawMessage(facts)}})
}
