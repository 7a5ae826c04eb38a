package server_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
)

// A slowIndex is a store whose lists block until they are let go.
type slowIndex struct {
	*store.Memory
	entered, release chan struct{}
}

func (s *slowIndex) Runs(ctx context.Context, f *store.RunFilter) ([]store.RunSummary, string, error) {
	s.entered <- struct{}{}
	<-s.release
	return s.Memory.Runs(ctx, f)
}

// Of the requests of a key that read all of its runs, one at a time works; those of other keys do not wait for it.
func TestOneScanOfAKeyAtATime(t *testing.T) {
	t.Parallel()
	index := &slowIndex{store.NewMemory(nil), make(chan struct{}, 1024), make(chan struct{})}
	f := serve(t, &setting{store: index, opts: func(o *server.Options) { o.Setup.Keys = []server.Key{key("a"), key("b")} }})
	f.client.Transport = &http.Transport{}
	answers := make(chan int, 16)
	get := func(path, name string) {
		go func() {
			resp, _ := f.do("GET", path, "", "Authorization", "Bearer "+text(name))
			answers <- resp.StatusCode
		}()
	}
	scans := []string{"/api/stats", "/api/runs?text=zz", "/api/runs?questions=true", "/api/sessions?q=zz", "/api/tools?stats=true"}
	get(scans[0], "a")
	<-index.entered
	for _, path := range scans {
		get(path, "a")
	}
	get(scans[0], "b")
	<-index.entered // that of b, since those of a wait
	get("/api/runs", "a")
	<-index.entered // a list without a search does not wait
	select {
	case <-index.entered:
		t.Error("two requests of one key read its runs")
	default:
	}
	close(index.release)
	for range len(scans) + 3 {
		if got := <-answers; got != 200 {
			t.Errorf("status %d", got)
		}
	}
}
