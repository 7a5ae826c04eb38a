package observe

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

var _ event.Sink = (*Slog)(nil)

// A Slog is an [event.Sink] that writes log records for operators. The messages are constant, and the attributes contain data of events but
// no content: no text of messages, arguments or outputs. Its methods may be called from several goroutines at once.
//
//	event                                                    level   message
//	a run begins                                             info    run started
//	a run waits, or continues                                info    run paused, run resumed
//	a run was answered, handed over or cancelled             info    run finished
//	a run failed or reached a limit                          warn    run finished, with its code and limit
//	an attempt of a model call succeeded                     debug   model call
//	an attempt failed, whether it is repeated or not         warn    model call failed, with its code
//	an attempt was cancelled                                 debug   model call, with its code
//	a tool call succeeded                                    debug   tool call
//	a tool call failed or was refused                        warn    tool call failed, with its code and the cause for operators
//	a tool call failed in the client, was denied by an
//	approver or was cancelled                                debug   tool call, with its code
//	an approval was requested, or resolved                   info    approval requested, approval resolved
//	a call written as text cannot be read                    debug   tool call not readable
//	the first call of a run in deprecated syntax             warn    deprecated tool call syntax
//	a tool is not offered, or definitions were loaded        debug   tool withheld, tools loaded
//
// The text of a tool's error is logged only with [tool.Options].LogErrors.
type Slog struct {
	log *slog.Logger

	mu   sync.Mutex
	runs map[string]*runLines
}

// maxFollowedRuns is the maximum number of runs for which data of earlier events is stored.
const maxFollowedRuns = 10_000

// runLines contains data of earlier events of a run for later lines.
type runLines struct {
	upstreamRequestID string
	executed          map[string]executed // by call id, until the call's result
	deprecated        bool                // the warning about deprecated syntax was written
}

type executed struct {
	size int
	rc   *int
}

// NewSlog returns a sink that writes to log, which must not be nil.
func NewSlog(log *slog.Logger) *Slog {
	return &Slog{log: log, runs: map[string]*runLines{}}
}

// Emit implements [event.Sink].
func (s *Slog) Emit(ctx context.Context, e event.Event) {
	switch d := e.Data.(type) {
	case *event.RunStarted:
		s.line(ctx, slog.LevelInfo, "run started", e,
			"provider", d.Provider, "model", d.Model, "dialect", d.Dialect,
			"tool_use_mode", string(d.ToolUseMode), "tools", d.Tools.Count)
		for _, held := range d.Tools.Withheld {
			s.line(ctx, slog.LevelDebug, "tool withheld", e, "tool_name", held.Tool, "reason", held.Reason, "rule", held.Rule)
		}
	case *event.ModelCallStarted: // the line of its end contains the same data
	case *event.ModelCallFinished:
		s.modelCall(ctx, e, d)
	case *event.ToolCallProposed:
		if d.DeprecatedSyntax {
			s.warnDeprecated(ctx, e, d)
		}
	case *event.ToolCallParseError:
		s.line(ctx, slog.LevelDebug, "tool call not readable", e,
			"dialect", d.Dialect, "code", d.Error, "bytes", d.ExcerptBytes)
	case *event.ToolCallPlanned:
	case *event.ApprovalRequested:
		s.line(ctx, slog.LevelInfo, "approval requested", e, "tool_call_id", d.ToolCallID, "tool_name", d.Tool,
			"rule", d.Rule, "expires_at", d.ExpiresAt)
	case *event.ApprovalResolved:
		s.line(ctx, slog.LevelInfo, "approval resolved", e, "tool_call_id", d.ToolCallID, "tool_name", d.Tool,
			"decision", d.Decision, "by", d.By, "reason_code", d.ReasonCode)
	case *event.ToolCallExecuted:
		level := slog.LevelDebug
		if !d.Success {
			level = slog.LevelWarn
		}
		s.note(ctx, level, e.RunID, func(r *runLines) {
			if r.executed == nil {
				r.executed = map[string]executed{}
			}
			r.executed[d.ToolCallID] = executed{d.OutputSizeBytes, d.RC}
		})
	case *event.ToolsLoaded:
		s.line(ctx, slog.LevelDebug, "tools loaded", e, "tool_call_id", d.ToolCallID, "tools", len(d.Tools))
	case *event.ToolCallResult:
		s.toolCall(ctx, e, d)
	case *event.RunPaused:
		s.line(ctx, slog.LevelInfo, "run paused", e, "reason", d.Reason, "pending", len(d.Pending))
	case *event.RunResumed:
		s.line(ctx, slog.LevelInfo, "run resumed", e, "reason", d.Reason, "pending", len(d.Pending))
	case *event.RunFinished:
		s.runFinished(ctx, e, d)
	case *event.TextDelta, *event.ReasoningDelta, *event.CommentaryDelta, *event.ToolCallDelta, *event.ToolCallProgress: // not logged
	}
}

func (s *Slog) modelCall(ctx context.Context, e event.Event, d *event.ModelCallFinished) {
	s.note(ctx, slog.LevelDebug, e.RunID, func(r *runLines) { r.upstreamRequestID = d.UpstreamRequestID })
	if d.Status == "error" && d.ErrorCode != string(lathe.CodeCancelled) {
		args := []any{"attempt", d.Attempt, "provider", d.Provider, "model", d.Model,
			"code", d.ErrorCode, "latency_ms", d.LatencyMS, "upstream_request_id", d.UpstreamRequestID}
		if d.UpstreamStatus != 0 {
			args = append(args, "upstream_status", d.UpstreamStatus)
		}
		s.line(ctx, slog.LevelWarn, "model call failed", e, withTexts(args, "provider_code", d.ProviderCode, "error_message", d.ErrorMessage)...)
		return
	}
	if !s.log.Enabled(ctx, slog.LevelDebug) { // before it allocates the arguments
		return
	}
	args := []any{"attempt", d.Attempt, "provider", d.Provider, "model", d.Model,
		"finish_reason", d.FinishReason, "tool_calls", d.ToolCalls,
		"input_tokens", d.Usage.InputTokens, "output_tokens", d.Usage.OutputTokens,
		"latency_ms", d.LatencyMS, "upstream_request_id", d.UpstreamRequestID}
	s.line(ctx, slog.LevelDebug, "model call", e, withTexts(args, "code", d.ErrorCode)...)
}

func (s *Slog) toolCall(ctx context.Context, e event.Event, d *event.ToolCallResult) {
	var x executed
	var upstream string
	s.mu.Lock()
	if r := s.runs[e.RunID]; r != nil {
		x, upstream = r.executed[d.ToolCallID], r.upstreamRequestID
		delete(r.executed, d.ToolCallID)
	}
	s.mu.Unlock()
	args := []any{"tool_name", d.Tool, "tool_call_id", d.ToolCallID, "seq", d.Seq,
		"status", d.Status, "code", d.ErrorType, "output_size_bytes", x.size, "latency_ms", d.LatencyMS,
		"upstream_request_id", upstream}
	if x.rc != nil {
		args = append(args, "rc", *x.rc)
	}
	level, msg := slog.LevelDebug, "tool call"
	isExpected := d.Client || d.ErrorType == lathe.CodeApprovalDenied || d.ErrorType == lathe.CodeCancelled
	if d.Status == "error" && !isExpected {
		level, msg = slog.LevelWarn, "tool call failed"
	}
	s.line(ctx, level, msg, e, withTexts(args, "cause", d.Cause)...)
}

func (s *Slog) runFinished(ctx context.Context, e event.Event, d *event.RunFinished) {
	s.mu.Lock()
	delete(s.runs, e.RunID)
	s.mu.Unlock()
	level := slog.LevelInfo
	if d.Status == "failed" || d.Status == "limited" {
		level = slog.LevelWarn
	}
	args := []any{"reason", string(d.Reason), "status", d.Status, "turns", d.Turns, "tool_calls", d.ToolCalls,
		"input_tokens", d.Usage.InputTokens, "output_tokens", d.Usage.OutputTokens, "latency_ms", d.LatencyMS}
	s.line(ctx, level, "run finished", e, withTexts(args, "code", d.ErrorCode, "limit", d.Limit, "blank", string(d.Blank))...)
}

func (s *Slog) warnDeprecated(ctx context.Context, e event.Event, d *event.ToolCallProposed) {
	first := false
	s.note(ctx, slog.LevelWarn, e.RunID, func(r *runLines) {
		first, r.deprecated = !r.deprecated, true
	})
	if first {
		s.line(ctx, slog.LevelWarn, "deprecated tool call syntax", e, "dialect", d.Dialect, "tool_name", d.ToolName)
	}
}

// note changes the data of a run with fn. It does nothing if lines of the level are disabled, or if the run is new and maxFollowedRuns are
// stored.
func (s *Slog) note(ctx context.Context, level slog.Level, runID string, fn func(*runLines)) {
	if !s.log.Enabled(ctx, level) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs[runID] == nil && len(s.runs) < maxFollowedRuns {
		s.runs[runID] = &runLines{}
	}
	if r := s.runs[runID]; r != nil {
		fn(r)
	}
}

// withTexts appends the keys and values of pairs whose value is not empty.
func withTexts(args []any, pairs ...string) []any {
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			args = append(args, pair[0], pair[1])
		}
	}
	return args
}

// line writes a line with the keys and values in args.
func (s *Slog) line(ctx context.Context, level slog.Level, msg string, e event.Event, args ...any) {
	if !s.log.Enabled(ctx, level) {
		return
	}
	r := slog.NewRecord(time.Now(), level, msg, 0) // no program counter: the message identifies the line
	r.AddAttrs(slog.String("run_id", e.RunID), slog.String("request_id", e.RequestID))
	if e.SessionID != "" {
		r.Add("session_id", e.SessionID)
	}
	if e.Turn > 0 {
		r.Add("iteration", e.Turn)
	}
	r.Add(args...)
	_ = s.log.Handler().Handle(ctx, r) // the error of a log handler cannot be reported
}
