package main

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/observe"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/tool"
)

// lookup is the tool of every contender: it does nothing.
type lookup struct{ spec lathe.ToolSpec }

var lookupOutput = &lathe.Output{Data: json.RawMessage(toolResult)}

func (l *lookup) Spec() *lathe.ToolSpec { return &l.spec }

func (l *lookup) Call(context.Context, json.RawMessage) (*lathe.Output, error) {
	return lookupOutput, nil
}

// counted is the caller's own sink: it looks at every event.
type counted struct{ events, bytes int }

func (c *counted) Emit(_ context.Context, e event.Event) {
	c.events++
	if d, ok := e.Data.(*event.TextDelta); ok {
		c.bytes += len(d.Text)
	}
}

// runLathe is the whole of Lathe: engine, loop, provider and runner, with policy, schema validation,
// limits, redaction, hashes, every event, and metrics on.
func runLathe(v variant, client *http.Client, base string) (func() error, error) {
	model, err := provider.OpenAI("gpt-4o-mini", &provider.Options{BaseURL: base, Key: secret.New("k"), Transport: client.Transport, Retry: provider.Retry{Attempts: 1}})
	if err != nil {
		return nil, err
	}
	set, err := tool.NewSet(&lookup{lathe.ToolSpec{Name: toolName, Description: "Looks a key up.", Schema: json.RawMessage(toolSchema),
		Effect: lathe.ReadOnly, Allowlist: []string{"ok"}, Origin: "bench"}})
	if err != nil {
		return nil, err
	}
	limits := lathe.Limits{MaxIterations: v.rounds + 2, MaxToolCalls: v.rounds*v.parallel + 1, MaxRepeatedCalls: v.rounds*v.parallel + 2}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.Default(), Limits: limits})
	if err != nil {
		return nil, err
	}
	l, err := loop.New(model, runner, &loop.Options{Limits: limits})
	if err != nil {
		return nil, err
	}
	sink := &counted{}
	e, err := engine.New(&engine.Options{Sinks: []event.Sink{observe.NewMetrics(nil), sink}})
	if err != nil {
		return nil, err
	}
	in := &loop.Input{Messages: []lathe.Message{lathe.User(prompt)}}
	return func() error {
		sink.events = 0
		res, err := e.Run(context.Background(), l, in, nil)
		if err != nil {
			return err
		}
		if sink.events == 0 || res.ToolCalls != v.rounds*v.parallel {
			return errWrong
		}
		return checkAnswer(res.Answer)
	}, nil
}
