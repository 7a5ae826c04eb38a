package uistream_test

import (
	"context"
	"slices"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/wire/uistream"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/sim"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/builtin"
)

type encoders []*struct {
	p   uistream.Protocol
	enc *uistream.Encoder
	out []byte
}

func (s encoders) Emit(_ context.Context, e event.Event) {
	for _, one := range s {
		one.out = one.enc.Append(one.out, &e)
	}
}

// Streams of real runs, with every fault of the simulated server, are complete.
func TestEncodeRealRuns(t *testing.T) {
	t.Parallel()
	server := sim.New(nil)
	set, err := tool.NewSet(builtin.Tools(nil)...)
	if err != nil {
		t.Fatal(err)
	}
	models := server.Names()
	if len(models) < 20 || !slices.Contains(models, "sim/demo") {
		t.Fatalf("models %v", models)
	}
	for _, name := range models {
		if name == "sim/fault-hang" || name == "sim/eval-hangs" || name == "sim/eval-stalls" {
			continue // they say nothing until they are cut off
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.Effects{ReadOnly: lathe.Allow}})
			if err != nil {
				t.Fatal(err)
			}
			l, err := loop.New(server.Model(name), runner, nil)
			if err != nil {
				t.Fatal(err)
			}
			var all encoders
			for _, p := range uistream.Protocols() {
				all = append(all, &struct {
					p   uistream.Protocol
					enc *uistream.Encoder
					out []byte
				}{p, uistream.NewEncoder(p, nil), nil})
			}
			_, _ = newEngine(t, nil).Run(t.Context(), l, &loop.Input{Messages: []lathe.Message{lathe.User("What is 7 + 35, and what time is it in Tokyo?")}}, &engine.RunOptions{Sinks: []event.Sink{all}}) // failures are streamed, too
			for _, one := range all {
				if err := check(one.p, one.out); err != nil {
					t.Errorf("%s: %v\n%s", one.p, err, one.out)
				}
				if !one.enc.HasEnded() {
					t.Errorf("%s has not ended", one.p)
				}
			}
		})
	}
}
