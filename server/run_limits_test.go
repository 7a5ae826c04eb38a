package server_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	limits "github.com/lathe-run/lathe/internal/setting"
	"github.com/lathe-run/lathe/internal/setting/limittest"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/server"
)

// limitRequests are the requests of each kind that start a run. %s is the options of the run, as members or as the object `lathe`.
var limitRequests = map[string]struct {
	path, body string
	bare       bool // the options are members of the body
}{
	"chat completions": {"/v1/chat/completions", `{"model":"sim/any","messages":[{"role":"user","content":"go"}]%s}`, false},
	"responses":        {"/v1/responses", `{"model":"sim/any","input":"go"%s}`, false},
	"messages":         {"/v1/messages", `{"model":"sim/any","max_tokens":100,"messages":[{"role":"user","content":"go"}]%s}`, false},
	"gemini":           {"/v1beta/models/sim/any:generateContent", `{"contents":[{"role":"user","parts":[{"text":"go"}]}]%s}`, false},
	"chat page":        {"/api/chat", `{"id":"c1","model":"sim/any","messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"go"}]}]%s}`, false},
	"runs":             {"/api/runs", `{"model":"sim/any","prompt":"go"%s}`, true},
}

// limited serves the scenario of a limit.
func limited(t *testing.T, s *limittest.Scenario, change func(*setting)) *fixture {
	t.Helper()
	set := &setting{model: s.Model(t), tools: limittest.Tools(), policy: limittest.Policy(), approver: limittest.Approver{}}
	change(set)
	return serve(t, set)
}

// hits returns the number of calls and runs that have reached the limit, from the metrics.
func hits(t *testing.T, f *fixture, key string) (n int) {
	t.Helper()
	w := httptest.NewRecorder()
	f.metrics.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		if rest, ok := strings.CutPrefix(line, fmt.Sprintf("lathe_limit_hits_total{limit=%q} ", key)); ok {
			if _, err := fmt.Sscan(rest, &n); err != nil {
				t.Fatal(err)
			}
		}
	}
	return n
}

// Each limit is obeyed in requests of each kind, whether the model, the key or the request has it. A request cannot name a limit
// that it may not narrow, and not one above that of the server.
func TestEachLimitIsObeyedInEachRequest(t *testing.T) {
	testdata.WithoutRace(t)
	t.Parallel()
	limittest.Each(t, func(t *testing.T, s *limittest.Scenario) {
		t.Parallel()
		for place, change := range map[string]func(*setting){
			"the model": func(set *setting) { set.limits = s.Tight },
			"the key": func(set *setting) {
				set.opts = func(o *server.Options) {
					k := key("a")
					k.Limits = s.Tight
					o.Setup.Keys = []server.Key{k}
				}
			},
			"the request": func(*setting) {},
		} {
			if place == "the model" && strings.HasPrefix(s.Key, "max_tools") {
				continue // a loop with more tools than its own limit is not made
			}
			f := limited(t, s, change)
			options := ""
			if place == "the request" {
				options = fmt.Sprintf(`"limits":{%q:%s}`, s.Key, s.JSON)
			}
			before := hits(t, f, s.Key)
			for name, req := range limitRequests {
				own := ""
				if options != "" && req.bare {
					own = "," + options
				} else if options != "" {
					own = `,"lathe":{` + options + "}"
				}
				resp, body := f.do("POST", req.path, fmt.Sprintf(req.body, own))
				if place == "the request" && !s.Narrows("request") {
					if resp.StatusCode != 400 || !strings.Contains(body, s.Key) {
						t.Errorf("%s in %s: %d %s", place, name, resp.StatusCode, body)
					}
					continue
				}
				if _, id, ok := strings.Cut(body, `"id":"`); ok && name == "runs" && resp.StatusCode == 201 {
					id, _, _ = strings.Cut(id, `"`)
					f.do("GET", "/api/runs/"+id+"/events", "") // until the run ends, which continues after the answer
				}
				now := hits(t, f, s.Key)
				for end := time.Now().Add(time.Minute); now <= before && name == "runs" && resp.StatusCode == 201 && time.Now().Before(end); {
					now = hits(t, f, s.Key) // it is counted after its last event
				}
				if now <= before {
					t.Errorf("%s in %s: the limit was not met: %d %s", place, name, resp.StatusCode, body)
				}
				before = now
			}
		}
		if !s.Narrows("request") {
			return
		}
		f := limited(t, s, func(set *setting) {
			set.opts = func(o *server.Options) {
				k := key("a")
				k.Limits = s.Tight
				o.Setup.Keys = []server.Key{k}
			}
		})
		wide := map[bool]string{true: `"2ms"`, false: "17"}[strings.HasPrefix(s.JSON, `"`)]
		if s.Key == "max_payload_bytes" {
			wide = "33"
		}
		for name, req := range limitRequests {
			own, param := fmt.Sprintf(`,"lathe":{"limits":{%q:%s}}`, s.Key, wide), "lathe.limits."+s.Key
			if req.bare {
				own, param = fmt.Sprintf(`,"limits":{%q:%s}`, s.Key, wide), "limits."+s.Key
			}
			if resp, body := f.do("POST", req.path, fmt.Sprintf(req.body, own)); resp.StatusCode != 400 || !strings.Contains(body, s.Key+" is above what this gateway allows.") {
				t.Errorf("%s above the key in %s (%s): %d %s", s.Key, name, param, resp.StatusCode, body)
			}
		}
	})
}

// The document of the API has a member for each limit that a request may narrow.
func TestLimitsOfTheDocument(t *testing.T) {
	t.Parallel()
	var doc struct {
		Components struct {
			Schemas struct {
				Limits struct {
					Properties map[string]struct {
						Type string
					}
				}
			}
		}
	}
	raw, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	got := doc.Components.Schemas.Limits.Properties
	for _, r := range limits.Rows[lathe.Limits]() {
		want := ""
		if r.Narrows("request") {
			want = map[string]string{"int": "integer", "int64": "integer", "float64": "number", "time.Duration": "string"}[r.In(&lathe.Limits{}).Type().String()]
		}
		if got[r.Key].Type != want {
			t.Errorf("server/openapi.json: Limits.%s has the type %q, want %q", r.Key, got[r.Key].Type, want)
		}
		delete(got, r.Key)
	}
	if len(got) > 0 {
		t.Errorf("server/openapi.json: Limits has %v, which are no limits", got)
	}
}
