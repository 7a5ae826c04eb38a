package server_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/server"
)

// switches keep the disabled tools in memory.
type switches struct {
	mu  sync.Mutex
	of  map[string]*server.DisabledTool
	err error
}

func (s *switches) Disabled(tool string) *server.DisabledTool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of[tool]
}

func (s *switches) Switch(_ context.Context, tool string, off *server.DisabledTool, _ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	if s.of[tool] = off; off == nil {
		delete(s.of, tool)
	}
	return nil
}

func openSwitched(t *testing.T, keys ...server.Key) (*runFixture, *switches) {
	t.Helper()
	s := &switches{of: map[string]*server.DisabledTool{}}
	h := open(t, func(set *setting) {
		set.policy = policy.All(policy.AllowAll(), policy.Disabled{Is: func(tool string) bool { return s.Disabled(tool) != nil }})
		set.opts = func(o *server.Options) { o.Switches, o.Setup.Keys, o.Setup.Policy = s, keys, set.policy }
	})
	return h, s
}

// toolView is what a listing says of a tool.
type toolView struct {
	Name       string
	Advertised bool
	Policy     string
	Rule       string `json:"policy_rule"`
	Disabled   *server.DisabledTool
	Stats      *struct {
		Calls, Errors int
		P95           int64 `json:"p95_ms"`
	}
	Last []struct {
		RunID   string `json:"run_id"`
		Success bool
	} `json:"last_calls"`
}

func (h *runFixture) tool(name string) *toolView {
	h.t.Helper()
	_, body := h.do("GET", "/api/tools?stats=true", "")
	list := parse[struct{ Data []*toolView }](h.t, body).Data
	i := slices.IndexFunc(list, func(v *toolView) bool { return v.Name == name })
	if i < 0 {
		h.t.Fatalf("%s is not listed: %s", name, body)
	}
	_, body = h.do("GET", "/api/tools/"+name, "")
	one := parse[toolView](h.t, body)
	if list[i].Advertised != one.Advertised || list[i].Policy != one.Policy || *list[i].Stats != *one.Stats || (list[i].Disabled == nil) != (one.Disabled == nil) {
		h.t.Errorf("listed as %+v, shown as %+v", list[i], one)
	}
	return one
}

func TestDisabledToolIsWithheldAndDenied(t *testing.T) {
	t.Parallel()
	admin := key("root")
	admin.Admin = true
	h, s := openSwitched(t, admin, key("ann"))
	ann := []string{"Authorization", "Bearer " + text("ann")}
	path := "/api/tools/write/"
	h.refused("POST", path+"disable", "", 403, "admin_required", ann...)
	h.refused("POST", path+"enable", "", 403, "admin_required", ann...)
	h.refused("POST", "/api/tools/nothing/disable", "", 404, "unknown_tool")
	h.refused("POST", path+"disable", `{"reason":"`+strings.Repeat("x", 201)+`"}`, 400, "invalid_request")
	h.refused("POST", path+"disable", `{"why":"x"}`, 400, "invalid_request")
	if before := h.tool("write"); !before.Advertised || before.Disabled != nil {
		t.Fatalf("%+v", before)
	}
	// A run that has begun has the tool no more.
	h.model.step = make(chan struct{})
	begun := h.begin(writeOne)
	if resp, body := h.do("POST", path+"disable", `{"reason":"it writes twice"}`); resp.StatusCode != http.StatusOK || !strings.Contains(body, `"by":"root"`) {
		t.Fatal(resp.StatusCode, body)
	}
	h.model.step <- struct{}{}
	h.model.step <- struct{}{}
	if got := h.rest(begun.ID); !strings.Contains(got.Answer, "policy_denied") || h.log.wrote.Load() != 0 {
		t.Errorf("%d writes: %+v", h.log.wrote.Load(), got)
	}
	close(h.model.step)
	later := h.rest(h.begin(writeOne).ID)
	if first := h.export(later.ID)[0]; !strings.Contains(first, `{"tool":"write","reason":"policy","rule":"disabled"}`) {
		t.Errorf("the tool is not withheld: %s", first)
	}
	got := h.tool("write")
	if got.Advertised || got.Policy != "deny" || got.Rule != "disabled" || got.Disabled == nil || got.Disabled.By != "root" || got.Disabled.Reason != "it writes twice" {
		t.Errorf("%+v", got)
	}
	h.key = text("ann")
	if got := h.tool("write"); got.Disabled == nil || got.Disabled.By != "" || got.Disabled.Reason != "it writes twice" {
		t.Errorf("of a key that is no admin key: %+v", got.Disabled)
	}
	h.refused("POST", path+"call", `{"arguments":{"n":1}}`, 403, "policy_denied")
	h.key = text("root")
	s.err = &lathe.Error{Code: lathe.CodeConflict, Err: errors.New("too many")}
	h.refused("POST", path+"enable", "", 409, "too_many_disabled")
	s.err = nil
	if resp, body := h.do("POST", path+"enable", ""); resp.StatusCode != http.StatusOK || !strings.Contains(body, `"disabled":null`) {
		t.Fatal(resp.StatusCode, body)
	}
	if got := h.rest(h.begin(writeOne).ID); got.Status != "completed" || h.log.wrote.Load() != 1 {
		t.Errorf("%d writes: %+v", h.log.wrote.Load(), got)
	}
}

// hiddenTool is one that is not offered to models.
type hiddenTool struct{ tenantTool }

func (*hiddenTool) Spec() *lathe.ToolSpec {
	own := *tenantSpec
	own.Name, own.Principals, own.Hidden = "backstage", nil, true
	return &own
}

// An admin key disables and enables tools that it may not use itself.
func TestAdminDisablesToolsThatItsKeyMayNotUse(t *testing.T) {
	t.Parallel()
	admin := key("root")
	admin.Admin, admin.Tools = true, []string{"look"}
	s := &switches{of: map[string]*server.DisabledTool{}}
	h := open(t, func(set *setting) {
		set.tools = append(set.tools, &tenantTool{}, &hiddenTool{})
		set.opts = func(o *server.Options) { o.Switches, o.Setup.Keys = s, []server.Key{admin, key("ann")} }
	})
	for name, tool := range map[string]string{"a tool that its key lacks": "write", "a tool of another key's workers": "vault", "a hidden tool": "backstage", "its own": "look"} {
		path := "/api/tools/" + tool
		for _, enabled := range []string{"/enable", "/disable", "/enable"} {
			if resp, body := h.do("POST", path+enabled, ""); resp.StatusCode != http.StatusOK || (s.Disabled(tool) != nil) != (enabled == "/disable") {
				t.Errorf("%s: %s: %d %s", name, enabled, resp.StatusCode, body)
			}
		}
		h.refused("POST", path+"/disable", "", 403, "admin_required", "Authorization", "Bearer "+text("ann"))
	}
	h.refused("POST", "/api/tools/nothing/disable", "", 404, "unknown_tool")
}

func TestToolsAreNotDisabledWithoutSwitches(t *testing.T) {
	t.Parallel()
	h := open(t, nil)
	h.refused("POST", "/api/tools/write/disable", "", 404, "not_found")
	h.refused("POST", "/api/tools/write/enable", "", 404, "not_found")
}

// The figures of a tool are those of the stored runs that the caller lists.
func TestToolFigures(t *testing.T) {
	t.Parallel()
	admin := key("root")
	admin.Admin = true
	h, _ := openSwitched(t, key("ann"), key("bob"), admin)
	h.refused("GET", "/api/tools?stats=yes", "", 400, "invalid_request")
	h.refused("GET", "/api/tools?stats=true&since=never", "", 400, "invalid_request")
	first := h.rest(h.begin("look {\"n\":1}\nlook {\"n\":2}").ID)
	second := h.rest(h.begin(`look {"n":3}`).ID)
	if got := h.tool("look"); got.Stats.Calls != 3 || got.Stats.Errors != 0 || len(got.Last) != 3 || got.Last[2].RunID != first.ID {
		t.Errorf("%+v %+v of %s and %s", got.Stats, got.Last, first.ID, second.ID)
	}
	if got := h.tool("hold"); got.Stats.Calls != 0 || len(got.Last) != 0 {
		t.Errorf("%+v", got)
	}
	if _, body := h.do("GET", "/api/tools", ""); strings.Contains(body, "stats") {
		t.Errorf("not asked for: %s", body)
	}
	h.key = text("bob")
	if got := h.tool("look"); got.Stats.Calls != 0 || len(got.Last) != 0 {
		t.Errorf("bob sees the calls of ann: %+v", got)
	}
	h.key = text("root")
	if got := h.tool("look"); got.Stats.Calls != 3 || len(got.Last) != 3 {
		t.Errorf("an admin sees %+v", got)
	}
}
