package replay

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"sync"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// errOver is the error of a model call that is not in the record.
var errOver = errors.New("the record holds no further answer of the model")

// An attempt is one recorded model call.
type attempt struct {
	turn     int
	started  *event.ModelCallStarted
	finished *event.ModelCallFinished // nil: the process ended during the call
	unread   []*event.ToolCallParseError
}

// A model replays the recorded model calls in order.
type model struct {
	info   lathe.ModelInfo
	cancel func() // cancels the run, for a run that was cancelled

	mu       sync.Mutex
	attempts []attempt
}

func (r *Record) model(cancel func()) *model {
	d := r.Started()
	m := &model{info: lathe.ModelInfo{Provider: d.Provider, Model: d.Model, Dialect: d.Dialect}, cancel: cancel}
	for i := range r.Events {
		switch d := r.Events[i].Data.(type) {
		case *event.ModelCallStarted:
			m.attempts = append(m.attempts, attempt{turn: r.Events[i].Turn, started: d})
		case *event.ModelCallFinished:
			if n := len(m.attempts); n > 0 {
				m.attempts[n-1].finished = d
			}
		case *event.ToolCallParseError:
			if n := len(m.attempts); n > 0 {
				m.attempts[n-1].unread = append(m.attempts[n-1].unread, d)
			}
		default: // events of tools and people
		}
	}
	return m
}

// Describe implements [lathe.Model].
func (m *model) Describe() lathe.ModelInfo { return m.info }

// next removes and returns the next attempt. retried reports whether the provider repeated it within the same call of the loop.
func (m *model) next() (a *attempt, retried bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.attempts) == 0 || m.attempts[0].finished == nil {
		return nil, false
	}
	a, m.attempts = &m.attempts[0], m.attempts[1:]
	if len(m.attempts) > 0 && a.finished.Status == "error" {
		then := &m.attempts[0]
		retried = then.turn == a.turn && then.started.Attempt > a.started.Attempt && then.started.Tools == a.started.Tools
	}
	return a, retried
}

// Generate implements [lathe.Model].
func (m *model) Generate(ctx context.Context, _ *lathe.Request) iter.Seq2[lathe.Delta, error] {
	const op = "replay: model call"
	return func(yield func(lathe.Delta, error) bool) {
		for n := 1; ; n++ {
			a, retried := m.next()
			switch {
			case a == nil:
				yield(lathe.Delta{}, lathe.CodeInternal.Wrap(op, errOver))
				return
			case a.finished.Status == "success":
				if !a.unreadable(yield) {
					return
				}
				yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: finish(a.finished)}, nil)
				return
			case a.finished.ErrorCode == string(lathe.CodeCancelled):
				m.cancel()
				<-ctx.Done()
				yield(lathe.Delta{}, lathe.CodeCancelled.Wrap(op, ctx.Err()))
				return
			}
			err := failure(a.finished)
			if !retried {
				yield(lathe.Delta{}, err)
				return
			}
			if !yield(lathe.Delta{Kind: lathe.DeltaRetry, Retry: &lathe.Retry{Attempt: n, Err: err}}, nil) {
				return
			}
		}
	}
}

// unreadable yields the calls that could not be parsed, with the recorded excerpts of their text. It yields the text of the message first,
// because an attempt that has shown text is not repeated. It returns false if yield did.
func (a *attempt) unreadable(yield func(lathe.Delta, error) bool) bool {
	if len(a.unread) == 0 {
		return true
	}
	if m := a.finished.Message; m != nil {
		if text := m.Text(); text != "" && !yield(lathe.Delta{Kind: lathe.DeltaText, Text: text}, nil) {
			return false
		}
	}
	for _, e := range a.unread {
		if !yield(lathe.Delta{Kind: lathe.DeltaParseError, Index: -1, Code: e.Error, Text: e.RawExcerpt, Bytes: e.ExcerptBytes}, nil) {
			return false
		}
	}
	return true
}

// finish returns the recorded result of a model call. For ignored calls only their number is recorded.
func finish(d *event.ModelCallFinished) *lathe.Finish {
	f := &lathe.Finish{Reason: d.FinishReason, Usage: d.Usage, Model: d.Model, UpstreamRequestID: d.UpstreamRequestID, ResponseID: d.ResponseID,
		ProviderCost: d.Dollars(), Faults: d.Faults}
	if d.Message != nil {
		f.Message = *d.Message
	}
	f.Message.Role = lathe.RoleAssistant
	for range d.IgnoredToolCalls {
		f.Message.Parts = append(slices.Clip(f.Message.Parts), lathe.ToolCall{Name: "unknown"})
	}
	return f
}

// failure returns an error equal to the recorded one.
func failure(d *event.ModelCallFinished) *lathe.Error {
	e := &lathe.Error{Code: lathe.Code(d.ErrorCode), Op: "replay: model call"}
	switch k := lathe.UpstreamKind(d.ErrorCode); k {
	case lathe.UpstreamTimeout, lathe.UpstreamRateLimited, lathe.Upstream4xx, lathe.Upstream5xx, lathe.UpstreamAborted, lathe.UpstreamBadProtocol, lathe.UpstreamLoading:
		up := &lathe.UpstreamError{Kind: k, RequestID: d.UpstreamRequestID, Status: d.UpstreamStatus, ProviderCode: d.ProviderCode,
			Message: d.ErrorMessage, Detail: d.ErrorMessage}
		if k == lathe.Upstream4xx && up.Message == "" { // possibly a refusal of tools, after which the loop continues without tools
			up.Status, up.Message = cmp.Or(up.Status, 404), "tools: no endpoints found that support tool use"
		}
		e.Code, e.Err = lathe.CodeUpstream, up
	default: // an error code other than those of upstream errors
	}
	return e
}
