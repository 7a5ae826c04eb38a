package doctor_test

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/lab/doctor"
	"github.com/lathe-run/lathe/sim"
)

// examine runs the doctor against the simulated model of that name, over loopback.
func examine(t *testing.T, model string, timeout time.Duration) *doctor.Report {
	t.Helper()
	srv := httptest.NewServer(sim.New(nil).Handler())
	t.Cleanup(srv.Close)
	rep, err := doctor.Run(t.Context(), doctor.Target{BaseURL: srv.URL + "/v1", Model: model},
		&doctor.Options{Timeout: timeout, Wait: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

const patient = 30 * time.Second

// Each fault of the simulated model is named by the finding of its name: there is none that probes
// cannot see. What a run survives is not called broken, and what ends it is.
func TestDoctorNamesEveryFault(t *testing.T) {
	t.Parallel()
	for _, f := range sim.FaultsOn(lathe.WireOpenAIChat) {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			timeout := patient
			if f.Name == "hang" { // nothing else is awaited in vain
				timeout = 300 * time.Millisecond
			}
			rep := examine(t, "sim/fault-"+f.Name, timeout)
			got, ok := rep.Find(f.Name)
			if !ok {
				t.Fatalf("not named; found: %s", strings.Join(ids(rep), ", "))
			}
			if got.Seen == "" || got.Then == "" || len(got.Probes) == 0 {
				t.Errorf("a finding without words: %+v", got)
			}
			if ends := f.Ends != lathe.ReasonAnswered; ends != (got.Severity == doctor.Broken) || ends != rep.Broken() {
				t.Errorf("a run ends %s, and the finding is %s, the report broken: %v", f.Ends, got.Severity, rep.Broken())
			}
		})
	}
}

// A server without faults has none of them.
func TestDoctorFindsNoFaultWhereThereIsNone(t *testing.T) {
	t.Parallel()
	rep := examine(t, sim.DemoModel, patient)
	if rep.Broken() {
		t.Error("broken")
	}
	// What is left is true: the simulated model reads no limit.
	if got, want := ids(rep), []string{"max-tokens-ignored"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, p := range rep.Probes {
		if p.Outcome == doctor.Skipped && p.Name != "written" && p.Name != "wrong-key" {
			t.Errorf("%s was skipped: %s", p.Name, p.Why)
		}
	}
}

func ids(rep *doctor.Report) []string {
	var out []string
	for _, f := range rep.Findings {
		out = append(out, f.ID)
	}
	return out
}
