package guest_test

import (
	"context"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/guest"
	"github.com/lathe-run/lathe/internal/setting/limittest"
	"github.com/lathe-run/lathe/tool"
)

type kept struct{ events []event.Event }

func (k *kept) Emit(_ context.Context, e event.Event) { k.events = append(k.events, e) }

// Each limit is obeyed in the runs of a guest, with the value of the session if a guest may set it, else with that of the host.
func TestEachLimitIsObeyedInSends(t *testing.T) {
	t.Parallel()
	limittest.Each(t, func(t *testing.T, s *limittest.Scenario) {
		t.Parallel()
		req := &guest.Request{Messages: []lathe.Message{lathe.User("go")}, Auto: true, Limits: lathe.Limits{MaxIterations: 8, MaxToolCalls: 32, MaxOutputBytes: 1 << 10}}
		opts := &guest.HostOptions{Tools: limittest.Set(t), Allow: []string{"echo", "agent", "wait", "pay"},
			Runner: tool.Options{Policy: limittest.Policy(), Approver: limittest.Approver{}, Limits: s.Tight}}
		if s.Guest > 0 {
			s.In(&req.Limits).Set(s.In(&s.Tight))
			opts.Runner.Limits = lathe.Limits{}
		}
		seen := &kept{}
		e, err := engine.New(&engine.Options{Sinks: []event.Sink{seen}})
		if err != nil {
			t.Fatal(err)
		}
		opts.Engine = e
		host, err := guest.NewHost(s.Model(t), opts)
		if err != nil {
			t.Fatal(err)
		}
		_, err = host.Send(t.Context(), req)
		if refused := err != nil && (s.Key == "max_tools" || s.Key == "max_tools_bytes"); !refused && (err != nil || !s.Met(seen.events)) {
			t.Errorf("the limit was not met: %v, %d events", err, len(seen.events))
		}
	})
}

// A guest sets each limit that it may set, up to its cap; without a value it is the default.
func TestGuestsSetLimits(t *testing.T) {
	t.Parallel()
	limittest.Each(t, func(t *testing.T, s *limittest.Scenario) {
		t.Parallel()
		defaults, sent := lathe.Limits{}.WithDefaults(), map[string]int64{"null": 0, "3": 0}
		if s.Guest > 0 {
			sent = map[string]int64{"null": s.In(&defaults).Int(), "3": 3, "99999999999": s.Guest}
		}
		for value, want := range sent {
			p := newProbe()
			p.call("cchat_create")
			p.printText(1000, "x")
			p.set(1000, `{"key":"`+s.Key+`","value":`+value+`}`)
			p.call("cchat_send", 1000, 2)
			w := newWorld(&script{})
			p.want(t, w, nil, &guest.RunOptions{}, 1000, 0, 0, 1001)
			got := s.In(&w.requests[0].Limits)
			if s.Guest == 0 && !got.IsZero() || s.Guest > 0 && got.Int() != want {
				t.Errorf("%s: %v, want %d", value, got, want)
			}
		}
	})
}
