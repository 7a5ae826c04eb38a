package doctor_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/gemini"
	"github.com/lathe-run/lathe/internal/wire/messages"
	"github.com/lathe-run/lathe/internal/wire/responses"
	"github.com/lathe-run/lathe/internal/wire/wiretest"
	"github.com/lathe-run/lathe/lab/doctor"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/sim"
)

// TestDoctorAsksOnEveryWire: of a good server on any wire the doctor finds nothing that is wrong, with answers, streams, calls
// and a round trip with a tool; probes of chat completions alone are skipped, with the reason.
func TestDoctorAsksOnEveryWire(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		served      wire.Served
		key, before string
	}{{responses.Codec{}, "Authorization", "Bearer "}, {messages.Codec{}, "X-Api-Key", ""}, {gemini.Codec{}, "X-Goog-Api-Key", ""}} {
		t.Run(string(c.served.Wire()), func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(wiretest.Handler(c.served, sim.New(nil).Model(sim.DemoModel), c.key, c.before+"right"))
			t.Cleanup(srv.Close)
			target := doctor.Target{BaseURL: srv.URL, Wire: c.served.Wire(), Model: sim.DemoModel, Key: secret.New("right")}
			rep, err := doctor.Run(t.Context(), target, nil)
			if err != nil {
				t.Fatal(err)
			}
			if n := len(rep.Findings); n > 1 || n == 1 && rep.Findings[0].ID != "max-tokens-ignored" { // the simulated model writes as much as it likes
				t.Errorf("found %+v", rep.Findings)
			}
			for _, p := range rep.Probes {
				skipped := slices.Contains([]string{"parallel-off", "history", "takes", "written"}, p.Name)
				if (p.Outcome == doctor.Skipped) != skipped || skipped != (p.Requests == 0) || skipped && !strings.Contains(p.Why, "wire "+string(c.served.Wire())) {
					t.Errorf("%+v", p)
				}
			}
			target.Key = secret.New("wrong")
			if rep, err = doctor.Run(t.Context(), target, nil); err != nil {
				t.Fatal(err)
			}
			if _, ok := rep.Find("status-401"); !ok || !rep.Broken() {
				t.Errorf("with a wrong key: found %+v", rep.Findings)
			}
			srv.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, `{"a":1}`) })
			if rep, err = doctor.Run(t.Context(), target, nil); err != nil {
				t.Fatal(err)
			}
			if _, ok := rep.Find("not-a-completion"); !ok || !rep.Broken() {
				t.Errorf("of what is no model: found %+v", rep.Findings)
			}
		})
	}
}
