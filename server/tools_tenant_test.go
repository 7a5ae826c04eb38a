package server_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire/workers"
	"github.com/lathe-run/lathe/remote"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/server"
)

// tenantTool is a tool of ann's alone, as a worker's is whose token names her key.
type tenantTool struct{ ran atomic.Int64 }

func (*tenantTool) Spec() *lathe.ToolSpec { return tenantSpec }
func (s *tenantTool) Call(context.Context, json.RawMessage) (*lathe.Output, error) {
	s.ran.Add(1)
	return &lathe.Output{Data: json.RawMessage(`"ran"`)}, nil
}

var tenantSpec = &lathe.ToolSpec{Name: "vault", Description: "Opens the vault.", Schema: json.RawMessage(`{"type":"object"}`), Effect: lathe.ReadOnly,
	Allowlist: []string{"*"}, Origin: "worker", Principals: []string{"ann"}}

// A tool of one tenant's workers is not offered to another, not called for it, and not told from one that
// there is not.
func TestT25_TenantsCannotTellToolsOfOthers(t *testing.T) {
	t.Parallel()
	vault := &tenantTool{}
	h := open(t, func(s *setting) {
		s.tools = append(s.tools, vault)
		s.opts = func(o *server.Options) { o.Setup.Keys = []server.Key{key("ann"), key("bob")} }
	})
	for _, who := range []string{"ann", "bob"} {
		h.key = text(who)
		has := who == "ann"
		if _, body := h.do("GET", "/api/tools", ""); strings.Contains(body, "vault") != has {
			t.Errorf("%s is shown %s", who, body)
		}
		resp, got := h.do("POST", "/api/tools/vault/call", `{"arguments":{}}`)
		other, want := h.do("POST", "/api/tools/fault/call", `{"arguments":{}}`)
		if has != (resp.StatusCode == 200) || !has && (resp.StatusCode != other.StatusCode || withoutID(got) != strings.ReplaceAll(withoutID(want), "fault", "vault")) {
			t.Errorf("%s calls it: %d %s, and one that there is not: %d %s", who, resp.StatusCode, got, other.StatusCode, want)
		}
		if resp, body := h.do("POST", "/v1/chat/completions", `{"model":"sim/any","messages":[{"role":"user","content":"vault {}"}],"lathe":{"tools":["vault"]}}`); has != (resp.StatusCode == 200) || has != strings.Contains(body, "ran") {
			t.Errorf("%s names it: %d %s", who, resp.StatusCode, body)
		}
		if _, body := h.do("POST", "/v1/chat/completions", `{"model":"sim/any","messages":[{"role":"user","content":"vault {}"}]}`); strings.Contains(body, "ran") != has || !has && !strings.Contains(body, "unknown_tool") {
			t.Errorf("a model calls it for %s: %s", who, body)
		}
		if run := h.rest(h.begin("vault {}").ID); strings.Contains(run.Answer, "ran") != has {
			t.Errorf("a run of %s: %+v", who, run)
		}
		declared := `{"model":"sim/any","messages":[{"role":"user","content":"vault {}"}],"tools":[{"type":"function","function":{"name":"vault","parameters":{"type":"object"}}}]}`
		if resp, body := h.do("POST", "/v1/chat/completions", declared); has != (resp.StatusCode == 400) || !has && !strings.Contains(body, `"finish_reason":"tool_calls"`) {
			t.Errorf("%s declares one of that name: %d %s", who, resp.StatusCode, body)
		}
	}
	if n := vault.ran.Load(); n != 4 {
		t.Errorf("it ran %d times, want 4: for ann alone", n)
	}
}

// A token that names keys serves their runs alone, whatever its worker says; and a worker of another token
// gets none of their calls, though it describes the tool in the same words.
func TestWorkersOfATenant(t *testing.T) {
	t.Parallel()
	r := newWorkerRig(t, server.WorkerOptions{Pools: []server.WorkerPool{{Name: "f", Token: secret.New(workerToken), Tools: []string{"act"}, Keys: []string{"ann"}},
		{Name: "g", Token: secret.New(workerToken + "g"), Tools: []string{"act"}}}})
	mine := r.hello(workerToken, "w")
	theirs := r.dial(workerToken + "g")
	offer := act
	offer.Principals = []string{"ann"}
	theirs.send(&workers.Frame{Type: workers.Hello, Worker: "w", Credits: 4, Offers: []remote.Tool{offer}})
	theirs.next(workers.Welcome)
	known, err := r.queue.Workers(t.Context())
	if err != nil || len(known) != 2 {
		t.Fatalf("%+v, %v", known, err)
	}
	for _, w := range known {
		if got := strings.Join(w.Tools[0].Principals, " "); got != map[string]string{"f/w": "ann", "g/w": ""}[w.ID] {
			t.Errorf("%s serves those of %q", w.ID, got)
		}
	}
	offer.Effect = "writes"
	call := &remote.Call{Key: "k", RunID: "r", CallID: "c", Tool: "act", Definition: offer.Definition(), Effect: lathe.Writes, Arguments: json.RawMessage(`{}`)}
	if known[1].Tools[0].Definition() == call.Definition {
		t.Error("the tools of two tenants have one definition")
	}
	if _, err := r.queue.PutCall(t.Context(), call, 1<<40); err != nil {
		t.Fatal(err)
	}
	if f := mine.next(workers.Call); f.Key != "k" {
		t.Errorf("%+v", f)
	}
}
