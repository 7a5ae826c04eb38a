package temporal

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/client"

	"github.com/lathe-run/lathe"
)

var record = flag.String("record", "", "write the histories of a real server into this `folder` of testdata/histories")

// recorded are the histories of each folder of testdata/histories.
var recorded = []string{"approval", "cancel", "client", "continued", "expires", "lost", "queue"}

// testRecord writes histories. They have no name of this machine.
func testRecord(t *testing.T, address, binary string) {
	if *record == "" {
		t.Skip("-record FOLDER writes histories")
	}
	folder := filepath.Join("testdata", "histories", *record)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	keep := func(name string, h *historypb.History) {
		text, err := temporalproto.CustomJSONMarshalOptions{}.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer // Marshal does not always indent in the same way
		if err := json.Indent(&b, text, "", "\t"); err != nil {
			t.Fatal(err)
		}
		b.WriteByte('\n')
		if err := os.WriteFile(filepath.Join(folder, name+".json"), b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	fixed := func(s *site) { s.Queue, s.Recorded = "agents", true }
	answered := func(x *trial, id string) {
		t.Helper()
		if out := x.finished(id); out.Reason != lathe.ReasonAnswered {
			t.Fatalf("%s: %+v", id, out)
		}
	}

	x := newTrial(t, address, fixed)
	// The worker is lost in a call that writes. The workflow is started without [Workflow.Start].
	first := x.serve(t, "worker", func(s *site) { s.Hang = "pay" })
	in := &Input{Start: &Start{Messages: []lathe.Message{lathe.User("tools lost")}, SessionID: "s"}}
	if _, err := x.client.ExecuteWorkflow(x.ctx, client.StartWorkflowOptions{ID: "lost", TaskQueue: x.Queue}, Name, in); err != nil {
		t.Fatal(err)
	}
	x.until("both tools are called", func() bool { return x.count("deed", "lost") == 2 })
	first.kill()
	worker := x.serve(t, "worker", nil)
	answered(x, "lost")
	keep("lost", x.history("lost", ""))

	x.start("two", "approval")
	s := x.parked("approval")
	x.must(x.update("approval", UpdateApproval, "1", approve(&s)))
	answered(x, "approval")
	keep("approval", x.history("approval", ""))

	x.start("client", "client")
	x.parked("client")
	x.must(x.update("client", UpdateResult, "1", ClientResult{CallID: "c0_0", Data: json.RawMessage(`{"did":"it"}`)}))
	answered(x, "client")
	keep("client", x.history("client", ""))

	x.start("queue", "queue")
	answered(x, "queue")
	keep("queue", x.history("queue", ""))

	x.start("waits", "cancel")
	x.until("cancel begins", func() bool { return x.count("model", "cancel") > 0 })
	x.must(x.update("cancel", UpdateCancel, "1"))
	if out := x.finished("cancel"); out.Reason != lathe.ReasonCancelled {
		t.Fatalf("%+v", out)
	}
	keep("cancel", x.history("cancel", ""))
	worker.stop(t)

	x = newTrial(t, address, func(s *site) { fixed(s); s.TTL = 3 * time.Second })
	worker = x.serve(t, "worker", nil)
	x.start("asks", "expires")
	answered(x, "expires")
	keep("expires", x.history("expires", ""))
	worker.stop(t)

	x = newTrial(t, startServer(t, binary, "-set", "limit.historyCount.suggestContinueAsNew=20"), fixed)
	x.serve(t, "worker", nil)
	x.start("load", "continued")
	x.parked("continued")
	x.must(x.update("continued", UpdateResult, "1", ClientResult{CallID: "c1_0", Data: json.RawMessage(`{"did":"it"}`)}))
	s = x.parked("continued")
	for len(s.Waiting) == 0 || s.Waiting[0].Digest == "" {
		s = x.parked("continued")
	}
	x.must(x.update("continued", UpdateApproval, "1", approve(&s)))
	answered(x, "continued")
	keep("continued", x.history("continued", ""))
}
