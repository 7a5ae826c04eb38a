package server_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
)

// The next process resumes a run that a process left, and keeps the setup of the run until it is over.
func TestNextProcessResumesARunThatWasLeft(t *testing.T) {
	t.Parallel()
	began := make(chan struct{})
	first := serve(t, &setting{model: &fake{wait: func(ctx context.Context) {
		close(began)
		<-ctx.Done()
	}}})
	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "POST", first.url+"/v1/chat/completions", strings.NewReader(ask("sim/x", "hi", `,"lathe":{"detach":true}`)))
	if err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if resp, err := first.client.Do(req); err == nil {
			_ = resp.Body.Close()
		}
	}()
	<-began
	leave()
	<-gone
	if left := first.crew.Drain(ctx); left != 1 {
		t.Fatalf("%d runs are left, want 1", left)
	}

	goOn := make(chan struct{})
	second := serve(t, &setting{store: first.store, model: &fake{
		wait: func(context.Context) { <-goOn },
		turn: func(int, *lathe.Request) lathe.Message { return says(lathe.Text{Text: "done"}) },
	}})
	if n, err := second.gateway.Recover(t.Context()); n != 1 || err != nil {
		t.Fatalf("goes on with %d runs (%v), want 1", n, err)
	}
	former, err := second.gateway.Reload(&server.Setup{Models: second.models})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-former:
		t.Error("the run goes on, and its setup was given up")
	default:
	}
	close(goOn)
	second.crew.Drain(context.Background())
	<-former
	rows, _, err := first.store.Runs(t.Context(), &store.RunFilter{})
	if err != nil || len(rows) != 1 || rows[0].Reason != lathe.ReasonAnswered {
		t.Errorf("runs %+v (%v), want one that is answered", rows, err)
	}
}
