package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/tool"
)

// slowPerson answers after a time.
type slowPerson struct{ after time.Duration }

func (slowPerson) Can(q tool.Question) bool { return q.Form != nil }

func (p slowPerson) Ask(ctx context.Context, questions map[string]tool.Question) (map[string]tool.Answer, error) {
	select {
	case <-time.After(p.after):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	out := map[string]tool.Answer{}
	for name := range questions {
		out[name] = tool.Answer{Form: json.RawMessage(`{"yes":true}`)}
	}
	return out, nil
}

var form = tool.Question{Form: &tool.Form{Message: "Sure?", Schema: json.RawMessage(`{"type":"object"}`)}}

// asks is a tool that asks, and works before and after it.
func asks(before, after time.Duration) *fake {
	f := reader("asks", func(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
		time.Sleep(before)
		a, err := tool.AskOne(ctx, "sure", form)
		if err != nil {
			return nil, err
		}
		select {
		case <-time.After(after):
			return &lathe.Output{Data: a.Form}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	f.spec.Timeout = 10 * time.Second
	return f
}

// The time in which a tool asks is not its own; what it does besides is.
func TestAskingStopsTheClock(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                   string
		before, answers, after time.Duration
		want                   lathe.Code
		took                   time.Duration
	}{
		{"at once", 0, 0, time.Second, "", time.Second},
		{"longer than the timeout", 4 * time.Second, time.Hour, 5 * time.Second, "", time.Hour + 9*time.Second},
		{"and too slow after it", 4 * time.Second, time.Hour, 7 * time.Second, lathe.CodeTimeout, time.Hour + 10*time.Second},
		{"at the last moment", 9999 * time.Millisecond, time.Minute, 0, "", time.Minute + 9999*time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRunner(t, nil, asks(c.before, c.after))
				ctx := tool.WithAsker(t.Context(), slowPerson{c.answers})
				began := time.Now()
				out := r.Begin(nil, nil).Execute(ctx, 1, []tool.Call{call("asks", `{}`)}, func(event.Data) {})
				if got := out.Calls[0].Code; got != c.want {
					t.Errorf("answered %q, want %q", got, c.want)
				}
				if took := time.Since(began); took < c.took || took > c.took+time.Second {
					t.Errorf("took %v, want %v", took, c.took)
				}
			})
		})
	}
}

// Without an asker AskOne returns ErrCannotAsk, and the tool may return that error.
func TestAskWithoutUser(t *testing.T) {
	t.Parallel()
	var can bool
	var asked error
	f := reader("asks", func(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
		can = tool.AskerFrom(ctx).Can(form)
		_, asked = tool.AskOne(ctx, "sure", form)
		return nil, asked
	})
	out := newRunner(t, nil, f).Begin(nil, nil).Execute(t.Context(), 1, []tool.Call{call("asks", `{}`)}, func(event.Data) {})
	if can || !errors.Is(asked, tool.ErrCannotAsk) || out.Calls[0].Code != lathe.CodeUnavailable {
		t.Errorf("can %v, error %v, answered %q", can, asked, out.Calls[0].Code)
	}
}
