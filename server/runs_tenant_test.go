package server_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/server"
)

// Every operation of the document is asked for by a stranger, by another tenant about a run of the
// first, and about a run that there is not: the tenant cannot tell the last two apart.
func TestT25_TenantsCannotTellRunsOfOthers(t *testing.T) {
	t.Parallel()
	t.Run("keys", func(t *testing.T) {
		t.Parallel()
		checkTenants(t, "ann", text("ann"), text("bob"))
	})
	t.Run("subjects of one profile", func(t *testing.T) {
		t.Parallel()
		checkTenants(t, issuer+"#ann", signed("ann"), signed("bob"))
	})
	t.Run("a subject with the name of a key", func(t *testing.T) {
		t.Parallel()
		checkTenants(t, "ann", text("ann"), signed("ann"))
	})
}

// checkTenants begins runs with the key or token of owner, and asks for them with another.
func checkTenants(t *testing.T, owner, own, other string) {
	h := open(t, func(s *setting) {
		s.opts = func(o *server.Options) {
			o.Setup.Keys, o.Setup.Identity = []server.Key{key("ann"), key("bob"), {Name: "dev"}}, &idp{others: "dev"}
			o.MCP = http.NotFoundHandler()
		}
	})
	h.key = own
	parked := h.rest(h.begin("write {\"n\":1}", `"session":"s1"`).ID)
	ended := h.rest(h.begin("look {\"n\":1}", `"session":"s1"`).ID)
	bob := bearer(other)
	for _, op := range theDocument(t).ops {
		name := op.Method + " " + op.Path
		path := func(id string) string {
			named := "look"
			switch {
			case strings.HasPrefix(op.Path, "/api/sessions/") && id != "run_none":
				id = "s1"
			case strings.HasPrefix(op.Path, "/api/principals/"):
				named = url.PathEscape(owner)
			case !strings.HasPrefix(op.Path, "/api/runs/") && !strings.HasPrefix(op.Path, "/api/chat/"):
				id = "any" // of something else
			}
			return strings.NewReplacer("{id}", id, "{call}", parked.Open[0].ID, "{name}", named).Replace(op.Path)
		}
		body := strings.ReplaceAll(string(op.Example), strings.Repeat("0", 64), parked.Open[0].Digest)
		if !op.Open {
			h.key = ""
			metadata := h.url + "/.well-known/oauth-protected-resource"
			if op.Path == "/mcp" {
				metadata += "/mcp"
			}
			if resp, got := h.do(op.Method, path(parked.ID), body); resp.StatusCode != 401 || !strings.HasPrefix(resp.Header.Get("WWW-Authenticate"), `Bearer resource_metadata="`+metadata+`"`) {
				t.Errorf("%s without a key: %d %s", name, resp.StatusCode, got)
			}
			if resp, got := h.do(op.Method, path(parked.ID), body, "Authorization", "Bearer "+text("eve")); resp.StatusCode != 401 {
				t.Errorf("%s with a wrong key: %d %s", name, resp.StatusCode, got)
			}
			h.key = own
		}
		if !strings.Contains(op.Path, "{id}") || op.Path == "/v1/models/{id}" {
			resp, got := h.do(op.Method, path(""), body, bob...)
			if resp.StatusCode == 401 || op.Method == "GET" && (strings.Contains(got, parked.ID) || strings.Contains(got, ended.ID)) {
				t.Errorf("%s shows bob the runs of ann: %d %s", name, resp.StatusCode, got)
			}
			continue
		}
		none, want := h.do(op.Method, path("run_none"), body, bob...)
		if op.Path != "/api/chat/{id}/stream" && none.StatusCode != 404 {
			t.Errorf("%s of a run that there is not: %d %s", name, none.StatusCode, want)
		}
		for _, id := range []string{parked.ID, ended.ID} {
			resp, got := h.do(op.Method, path(id), body, bob...)
			if resp.StatusCode != none.StatusCode || withoutID(got) != withoutID(want) {
				t.Errorf("%s by bob: %d %s, and where there is no run: %d %s", name, resp.StatusCode, got, none.StatusCode, want)
			}
		}
	}
	if got := h.show(parked.ID); got.Status != "parked" || got.Last != parked.Last || got.Open[0].Digest != parked.Open[0].Digest {
		t.Errorf("bob changed the run of ann: %+v", got)
	}
	if got := h.show(ended.ID); got.Status != "completed" || got.Principal != owner {
		t.Errorf("%+v", got)
	}
	for _, query := range []string{"?session_id=s1", "?run_id=" + parked.ID, "?principal=" + url.QueryEscape(owner), "?status=parked"} {
		for _, list := range []string{"/api/runs", "/api/summaries"} {
			if _, body := h.do("GET", list+query, "", bob...); strings.Contains(body, parked.ID) || strings.Contains(body, ended.ID) {
				t.Errorf("%s%s shows bob a run of ann: %s", list, query, body)
			}
		}
	}
}
