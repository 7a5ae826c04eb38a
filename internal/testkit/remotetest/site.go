// Package remotetest provides a runner over the tools of a call queue, without a network, for tests of both sides of the queue.
package remotetest

import (
	"context"
	"sync"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/remote"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/remotetool"
)

// A Site holds a set with the tools that the workers of a queue serve, and a runner whose policy allows all of them.
type Site struct {
	Queue     remote.Queue
	Catalogue *remotetool.Catalogue
	Set       *tool.Set
	Runner    *tool.Runner

	t    testing.TB
	stop func()
}

// Open returns a site that follows the queue until Close.
func Open(t testing.TB, queue remote.Queue, own ...lathe.Tool) *Site {
	t.Helper()
	set, err := tool.NewSet(own...)
	if err != nil {
		t.Fatal(err)
	}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.AllowAll()})
	if err != nil {
		t.Fatal(err)
	}
	s := &Site{t: t, Queue: queue, Catalogue: remotetool.New(queue, nil), Set: set, Runner: runner}
	if err := s.Catalogue.Attach(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var over sync.WaitGroup
	over.Go(func() { s.Catalogue.Follow(ctx) })
	s.stop = func() {
		cancel()
		over.Wait()
	}
	return s
}

// Close stops following the queue, and returns when that has ended.
func (s *Site) Close() { s.stop() }

// Ask returns a call of the named tool, as a model would make it.
func Ask(name string) tool.Call {
	return tool.Call{ToolCall: lathe.ToolCall{ID: "call_1", Name: name, Arguments: `{"a":1.50}`}}
}

// Run makes a call as the run with that id, and returns the result that the model gets.
func (s *Site) Run(ctx context.Context, id string, call tool.Call) lathe.ToolResult {
	s.t.Helper()
	w := s.Runner.Begin(&lathe.RunInfo{RunID: id, RequestID: "req", SessionID: "s", Depth: 1}, nil)
	out := w.Execute(ctx, 1, []tool.Call{call}, func(event.Data) {})
	if len(out.Messages) != 1 {
		s.t.Errorf("%d messages", len(out.Messages))
		return lathe.ToolResult{IsError: true}
	}
	return out.Messages[0].Parts[0].(lathe.ToolResult)
}
