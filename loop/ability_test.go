package loop_test

import (
	"context"
	"iter"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/runinput"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/sim"
	"github.com/lathe-run/lathe/transform"
)

// counting is the decorator that a user writes: three methods.
type counting struct {
	inner lathe.Model
	n     int
}

func (c *counting) Describe() lathe.ModelInfo { return c.inner.Describe() }
func (c *counting) Unwrap() lathe.Model       { return c.inner }
func (c *counting) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	c.n++
	return c.inner.Generate(ctx, req)
}

// able is a model that relays one delta as bytes.
type able struct{ *script }

func (a *able) Relays() lathe.Wire { return lathe.WireOpenAIChat }

func (a *able) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	if req.Relay != nil && req.Relay.Wire == lathe.WireOpenAIChat {
		req.Relay.Take(&lathe.Raw{Bytes: []byte("data: {}\n\n"), Sound: true})
	}
	return a.script.Generate(ctx, req)
}

// A decorator with Describe, Generate and Unwrap loses nothing, wherever it stands.
func TestDecoratorKeepsAbilities(t *testing.T) {
	t.Parallel()
	chain, err := transform.New(transform.List{ToolCall: []string{"assistant_tool_calls_arguments_blank_to_empty_object"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	plain := func(m lathe.Model) lathe.Model { return m }
	for name, wrap := range map[string]func(lathe.Model) lathe.Model{
		"alone":            plain,
		"twice":            func(m lathe.Model) lathe.Model { return &counting{inner: m} },
		"under transforms": func(m lathe.Model) lathe.Model { return transform.Wrap(m, chain) },
		"under a dialect": func(m lathe.Model) lathe.Model {
			m, err := provider.WithDialect(m, "tags", nil)
			if err != nil {
				t.Fatal(err)
			}
			return m
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &able{script: &script{info: lathe.ModelInfo{Provider: "p", Model: "m", NoTools: true}, turns: []turn{textTurn("hi")}}}
			c := &counting{inner: a}
			l := newLoop(t, wrap(c), nil, echo("echo"))
			wire, shown := lathe.WireOpenAIChat, 1
			if name == "under a dialect" { // whose text holds calls
				wire, shown = "", 0
			}
			if got := l.Relays(); got != wire {
				t.Errorf("the loop relays %q, want %q", got, wire)
			}
			in, took := user("x"), 0
			runinput.Of(in).Relay = &lathe.Relay{Wire: lathe.WireOpenAIChat, Stream: true, Take: func(*lathe.Raw) { took++ }}
			for e := range l.Run(t.Context(), in) {
				if s, ok := e.Data.(*event.RunStarted); ok && (s.Provider != "p" || s.Model != "m" || s.ToolUseMode != lathe.ModeDisabled) {
					t.Errorf("the run is of %q %q, mode %q", s.Provider, s.Model, s.ToolUseMode)
				}
			}
			if c.n != 1 || took != shown {
				t.Errorf("%d requests, %d shown; want 1, %d", c.n, took, shown)
			}
		})
	}
}

// The models of this module have the abilities that package loop defines.
func TestModelsHaveAbilities(t *testing.T) {
	t.Parallel()
	chat, err := provider.OpenAI("m", &provider.Options{BaseURL: "http://127.0.0.1:1/v1"})
	if err != nil {
		t.Fatal(err)
	}
	var m lathe.Model = &counting{inner: chat}
	if _, ok := lathe.ModelAs[loop.TokenCounter](m); !ok {
		t.Error("a decorated Chat counts no tokens")
	}
	if r, ok := lathe.ModelAs[loop.Relayer](m); !ok || r.Relays() != lathe.WireOpenAIChat {
		t.Error("a decorated Chat does not relay")
	}
	simulated := sim.New(nil)
	if _, ok := lathe.ModelAs[loop.Relayer](simulated.Model("")); ok {
		t.Error("a model without a server relays")
	}
	if _, ok := lathe.ModelAs[loop.Relayer](nil); ok {
		t.Error("no model relays")
	}
}
