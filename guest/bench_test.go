package guest_test

import (
	"context"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/guest"
)

// One program from its start to its end: a session, one send, one call of its function, the answer.
func BenchmarkGuestRun(b *testing.B) {
	rt, err := guest.New(nil)
	if err != nil {
		b.Fatal(err)
	}
	g := newGuest()
	sumTool(g, 3)
	p, err := rt.Compile(b.Context(), (&flow{prompt: sumPrompt, flags: 3, functions: map[int]string{3: sumJSON}}).build(g), nil)
	if err != nil {
		b.Fatal(err)
	}
	history := []lathe.Message{lathe.User(sumPrompt), lathe.Assistant("42")}
	host := failing(func(ctx context.Context, req *guest.Request) (*guest.Reply, error) {
		call := req.Tools[0].Call
		if _, err := call(ctx, []byte(`{"a":7,"b":35}`)); err != nil {
			return nil, err
		}
		return &guest.Reply{Result: &event.Result{Reason: lathe.ReasonAnswered, History: history}, History: history}, nil
	})
	b.ReportAllocs()
	for b.Loop() {
		if o := p.Run(b.Context(), host, nil); o.Reason != lathe.ReasonAnswered || o.Code != 0 {
			b.Fatal(o.Reason, o.Code, o.Err)
		}
	}
	if err := rt.Close(); err != nil {
		b.Error(err)
	}
}

// One call of a function by the host, memory protocol included.
func BenchmarkGuestFunction(b *testing.B) {
	rt, err := guest.New(nil)
	if err != nil {
		b.Fatal(err)
	}
	g := newGuest()
	sumTool(g, 3)
	p, err := rt.Compile(b.Context(), (&flow{prompt: sumPrompt, flags: 2, functions: map[int]string{3: sumJSON}}).build(g), nil)
	if err != nil {
		b.Fatal(err)
	}
	host := failing(func(ctx context.Context, req *guest.Request) (*guest.Reply, error) {
		call := req.Tools[0].Call
		b.ReportAllocs()
		for b.Loop() {
			if _, err := call(ctx, []byte(`{"a":7,"b":35}`)); err != nil {
				return nil, err
			}
		}
		return &guest.Reply{Result: &event.Result{Reason: lathe.ReasonAnswered}}, nil
	})
	if o := p.Run(b.Context(), host, &guest.RunOptions{Timeout: -1}); o.Err != nil {
		b.Fatal(o.Err)
	}
	if err := rt.Close(); err != nil {
		b.Error(err)
	}
}
