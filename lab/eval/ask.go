package eval

import (
	"context"
	"log/slog"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/tool"
)

// An Ask is a scenario that is one question: messages for the model, tools that it may call, and a function that judges its calls. No call
// is executed: the run ends with the model's first message. The settings that an Ask requires take precedence over all other settings. If
// the server does not support tools, the request is not repeated without them.
type Ask struct {
	Messages []lathe.Message   `json:"messages"`
	Tools    []*lathe.ToolSpec `json:"tools"`
	// Key identifies the data on which Judge depends. A run that was recorded with another key is repeated.
	Key string `json:"key"`
	// Judge decides whether the calls are correct. calls are in the model's order, with arguments as the model wrote them, and may be
	// empty. Judge may be called from several goroutines at once.
	Judge func(calls []lathe.ToolCall) Check `json:"-"`
}

// settings returns the settings that end a run with the first message, which may contain any number of calls.
func (a *Ask) settings() []Setting {
	if a == nil {
		return nil
	}
	return []Setting{{Key: "tool_use_mode", Value: string(lathe.ModeRelaxed)}, {Key: "parallel_tool_calls", Value: "true"},
		{Key: "max_iterations", Value: "1"}, {Key: "on_limit", Value: string(lathe.OnLimitStop)}, {Key: "fallback_retry_count", Value: "0"}}
}

// ask makes the run of a scenario with an [Ask]. It returns an error only if the harness fails.
func (j *job) ask(ctx context.Context, model lathe.Model, got *seen, now func() time.Time, log *slog.Logger) (*Run, error) {
	a, r := j.scenario.Ask, j.run
	l, err := j.loop(model, nil, tool.Options{Log: log})
	if err != nil {
		return nil, err
	}
	r.Started = now()
	res, _ := l.Do(ctx, &loop.Input{Run: lathe.RunInfo{RunID: j.name}, Messages: a.Messages, ClientTools: a.Tools}) // res contains the error
	r.ended(res, now())
	r.judgeAsk(a, res, got)
	return &r, nil
}

// judgeAsk sets the class of the run. A truncated message is wrong, whatever its content.
func (r *Run) judgeAsk(a *Ask, res *event.Result, got *seen) {
	defer r.close(res, got)
	var calls []lathe.ToolCall
	answered := len(res.History) > len(a.Messages)
	if answered {
		calls = res.History[len(a.Messages)].Calls()
	}
	switch res.Reason {
	case lathe.ReasonUpstreamError:
		r.Class = upstreamClass(res.Err)
	case lathe.ReasonCancelled, lathe.ReasonInterrupted, lathe.ReasonInternal, lathe.ReasonGuestFault, lathe.ReasonBudgetExhausted:
		r.Class = classException
	case lathe.ReasonRunTimeout:
		r.Class, r.Error = ClassTimeout, "the time of the run (--timeout) ended"
	case lathe.ReasonLength, lathe.ReasonContentFilter:
		r.Class, r.Error = ClassAssertionFailed, "the run ended "+string(res.Reason)
	default:
		if !answered && answeredIfEmpty(res.Reason) != lathe.ReasonAnswered { // a blank message is not in the history
			r.Class = classException
			break
		}
		r.Checks = []Check{a.Judge(calls)}
		if r.setFailedChecks() && len(calls) == 0 {
			r.Class = ClassNoToolCalls
		}
	}
	if r.Class != "" && r.Error == "" {
		r.setServerMessage(res)
	}
}
