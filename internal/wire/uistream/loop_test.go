package uistream_test

import (
	"context"
	"slices"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
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

func (s encoders) Emit(_ context.Context, e lathe.Event) {
	for _, one := range s {
		one.out = one.enc.Append(one.out, &e)
	}
}

// Real runs, with every fault that the simulated server has, are told as whole lifecycles.
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
			runner := tool.NewRunner(set, &tool.Options{Policy: policy.Effects{ReadOnly: lathe.Allow}})
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
			_, _ = engine.New(nil).Run(t.Context(), l, &loop.Input{Messages: []lathe.Message{lathe.User("What is 7 + 35, and what time is it in Tokyo?")}}, all) // failures are told, too
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
