package sqlite_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/testkit/storetest"
	"github.com/lathe-run/lathe/remote"
	"github.com/lathe-run/lathe/store/sqlite"
)

func TestQueue(t *testing.T) {
	t.Parallel()
	every := 37
	if testdata.All() {
		every = 11
	}
	storetest.TestQueue(t, every, func() remote.Queue {
		s, err := sqlite.Open(filepath.Join(t.TempDir(), "runs.db"), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	})
}

// A call is there when the file is opened again, and so are the workers.
func TestQueueSurvives(t *testing.T) {
	t.Parallel()
	path, ctx := filepath.Join(t.TempDir(), "runs.db"), t.Context()
	open := func() *sqlite.Store {
		s, err := sqlite.Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	if _, err := s.PutCall(ctx, &remote.Call{Key: "k", RunID: "r", Tool: "act", Definition: "d", Arguments: []byte(`{}`)}, time.Hour); err != nil {
		t.Fatal(err)
	}
	calls, err := s.ClaimCalls(ctx, "f/w", []string{"d"}, time.Hour, 1)
	if err != nil || len(calls) != 1 {
		t.Fatalf("%d, %v", len(calls), err)
	}
	ref := calls[0].Ref()
	if err := s.StartCall(ctx, ref, time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := s.PutWorker(ctx, &remote.Worker{ID: "f/w", Pool: "f", Tools: []remote.Tool{{Name: "act"}}}, time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open()
	defer func() { _ = s.Close() }()
	if err := s.FinishCall(ctx, ref, &remote.Result{Data: []byte("1")}); err != nil {
		t.Fatal(err)
	}
	if got, err := s.FindCall(ctx, "k"); err != nil || got.State != remote.Done || string(got.Result.Data) != "1" {
		t.Errorf("%+v, %v", got, err)
	}
	if ws, err := s.Workers(ctx); err != nil || len(ws) != 1 || ws[0].Tools[0].Name != "act" {
		t.Errorf("%+v, %v", ws, err)
	}
}
