// Package remotetest has a gateway without its wire, for tests of what stands on either side of a call queue.
package remotetest

import (
	"context"
	"sync"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/remote"
)

// A Site has the tools that the workers of a queue serve in a set, and runs that may call all of them.
type Site struct {
	Queue     lathe.CallQueue
	Catalogue *remote.Catalogue
	Set       *tool.Set
	Runner    *tool.Runner

	t    testing.TB
	stop func()
}

// Open returns a site that follows the queue until Close.
func Open(t testing.TB, queue lathe.CallQueue, own ...lathe.Tool) *Site {
	t.Helper()
	set, err := tool.NewSet(own...)
	if err != nil {
		t.Fatal(err)
	}
	s := &Site{t: t, Queue: queue, Catalogue: remote.New(queue, nil), Set: set, Runner: tool.NewRunner(set, &tool.Options{Policy: policy.AllowAll()})}
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

// Close ends the following, and waits for that.
func (s *Site) Close() { s.stop() }

// Ask is the one call of the runs here.
func Ask(name string) tool.Call {
	return tool.Call{ToolCall: lathe.ToolCall{ID: "call_1", Name: name, Arguments: `{"a":1.50}`}}
}

// Run has a run of that id make a call, and returns what it is told.
func (s *Site) Run(ctx context.Context, id string, call tool.Call) lathe.ToolResult {
	s.t.Helper()
	w := s.Runner.Begin(&lathe.RunInfo{RunID: id, RequestID: "req", SessionID: "s", Depth: 1}, nil)
	defer w.Close()
	out := w.Execute(ctx, 1, []tool.Call{call}, func(lathe.EventData) {})
	if len(out.Messages) != 1 {
		s.t.Errorf("%d messages", len(out.Messages))
		return lathe.ToolResult{IsError: true}
	}
	return out.Messages[0].Parts[0].(lathe.ToolResult)
}
