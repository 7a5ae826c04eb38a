package server_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/lathe-run/lathe/store"
)

// countedLists is a store that counts the lists of runs that are read.
type countedLists struct {
	*store.Memory
	lists atomic.Int64
}

func (s *countedLists) Runs(ctx context.Context, f *store.RunFilter) ([]store.RunSummary, string, error) {
	s.lists.Add(1)
	return s.Memory.Runs(ctx, f)
}

// The runs of a store are listed once for calls that are not of this server, and not for each request of the conversation.
func TestUnknownCallsAreLookedUpOnce(t *testing.T) {
	t.Parallel()
	kept := &countedLists{Memory: store.NewMemory(nil)}
	f := serve(t, &setting{store: kept})
	const conversation = `{"role":"user","content":"a"},
		{"role":"assistant","content":null,"tool_calls":[{"id":"elsewhere","type":"function","function":{"name":"weather","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"elsewhere","content":"sunny"}`
	ask := func(more string) int64 {
		before := kept.lists.Load()
		f.answer(`{"model":"sim/demo","tools":[`+weatherTool+`],"messages":[`+conversation+more+`]}`, false)
		return kept.lists.Load() - before
	}
	// Another process of the store could still be storing the run of calls whose results have just been brought.
	const later = `,{"role":"assistant","content":"sunny"},{"role":"user","content":"b"}`
	for _, c := range []struct {
		more  string
		lists bool
	}{{"", true}, {later, true}, {later, false}, {later + `,{"role":"user","content":"c"}`, false}} {
		if n := ask(c.more); n > 0 != c.lists {
			t.Errorf("%d lists of runs were read for %q, want some: %v", n, c.more, c.lists)
		}
	}
}
