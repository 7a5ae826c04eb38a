package server_test

import (
	"context"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
)

// A slowLists is a store that lists the runs of one key only when the test lets it.
type slowLists struct {
	*store.Memory
	entered, release chan struct{}
}

func (s *slowLists) Runs(ctx context.Context, f *store.RunFilter) ([]store.RunSummary, string, error) {
	if f.Principal == "ann" {
		s.entered <- struct{}{}
		<-s.release
	}
	return s.Memory.Runs(ctx, f)
}

// While the runs of one key are read, requests of another one do not wait.
func TestKeysDoNotWaitForTheLoadOfAnother(t *testing.T) {
	t.Parallel()
	s := &slowLists{store.NewMemory(nil), make(chan struct{}, 1), make(chan struct{})}
	f := serve(t, &setting{store: s, opts: func(o *server.Options) { o.Setup.Keys = []server.Key{key("ann"), key("bob")} }})
	c := wireClients["chat"]
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // it is reached only if the test fails
	defer cancel()
	ask := func(name string) *wireAnswer {
		body := c.body(false, []*lathe.ToolSpec{weatherSpec()}, lathe.User("a"), lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{calls("elsewhere", "weather", "{}")}}, c.gives("elsewhere"))
		return c.send(ctx, f, false, body, c.with(name)...)
	}
	ann := make(chan *wireAnswer, 1)
	go func() { ann <- ask("ann") }()
	select {
	case <-s.entered:
	case a := <-ann:
		t.Fatalf("%d %s %v", a.status, a.body, a.err)
	}
	bob := ask("bob")
	close(s.release)
	if a := <-ann; a.err != nil || bob.err != nil {
		t.Errorf("ann %v, bob %v", a.err, bob.err)
	}
}
