package temporal

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
)

// replay replays a history with the workflow of this version.
func replay(t *testing.T, h *historypb.History) error {
	t.Helper()
	e, err := engine.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewWorkflow(nil, &Options{Engine: e, Store: store.NewMemory(nil), LoopFor: func(string) (*loop.Loop, error) { return nil, lathe.ErrNotFound }})
	if err != nil {
		t.Fatal(err)
	}
	r, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{DisableDeadlockDetection: true}) // it goes by the wall clock
	if err != nil {
		t.Fatal(err)
	}
	r.RegisterWorkflowWithOptions(w.Run, workflow.RegisterOptions{Name: Name})
	return r.ReplayWorkflowHistory(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)), h)
}

// The histories of former versions are replayed by this one: an upgrade does not break a workflow that is under way. A real server has
// written them; see [testRecord]. If this test fails, the workflow has other commands than before: put the change behind
// workflow.GetVersion. Histories of a release are not recorded again.
func TestReplay(t *testing.T) {
	t.Parallel()
	folders, err := filepath.Glob("testdata/histories/*")
	if err != nil || len(folders) == 0 {
		t.Fatalf("%v, %v", folders, err)
	}
	for _, folder := range folders {
		for _, name := range recorded {
			t.Run(filepath.Base(folder)+"/"+name, func(t *testing.T) {
				t.Parallel()
				text, err := os.ReadFile(filepath.Join(folder, name+".json"))
				if err != nil {
					t.Fatal(err)
				}
				h := &historypb.History{}
				if err := (temporalproto.CustomJSONUnmarshalOptions{}).Unmarshal(text, h); err != nil {
					t.Fatal(err)
				}
				if err := replay(t, h); err != nil {
					t.Error(err)
				}
				// With another activity the history is that of another workflow.
				for _, e := range h.Events {
					if a := e.GetActivityTaskScheduledEventAttributes(); a != nil {
						a.ActivityType.Name = "another"
						break
					}
				}
				if err := replay(t, h); err == nil {
					t.Error("the history with another activity is replayed, too")
				}
			})
		}
	}
}
