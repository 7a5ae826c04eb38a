package server_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/lathe-run/lathe/server"
)

// TestReloadIsForAdmins: the callback is called once for each request of an admin key, with the name of the key, and its error
// is the answer.
func TestReloadIsForAdmins(t *testing.T) {
	t.Parallel()
	var by []string
	var fails error
	h := open(t, func(s *setting) {
		s.opts = func(o *server.Options) {
			root := key("root")
			root.Admin = true
			o.Setup.Keys = []server.Key{root, key("ann")}
			o.Reload = func(_ context.Context, name string) error {
				by = append(by, name)
				return fails
			}
		}
	})
	root := []string{"Authorization", "Bearer " + text("root")}
	h.refused("POST", "/api/reload", "", http.StatusForbidden, "admin_required", "Authorization", "Bearer "+text("ann"))
	h.refused("POST", "/api/reload", "", http.StatusUnauthorized, "invalid_api_key", "Authorization", "Bearer "+text("eve"))
	if len(by) != 0 {
		t.Errorf("it was called for %q", by)
	}
	if resp, body := h.do("POST", "/api/reload", "", root...); resp.StatusCode != http.StatusOK || body != `{"reloaded":true}`+"\n" {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	fails = errors.New("lathe.yaml:3: the key colour is unknown")
	if p := h.refused("POST", "/api/reload", "", http.StatusUnprocessableEntity, "invalid_config", root...); p.Detail != "The configuration was not reloaded, the one before stays in force: lathe.yaml:3: the key colour is unknown" {
		t.Errorf("%+v", p)
	}
	h.gateway.Unready()
	h.refused("POST", "/api/reload", "", http.StatusServiceUnavailable, "draining", root...)
	if len(by) != 2 || by[0] != "root" || by[1] != "root" {
		t.Errorf("it was called for %q", by)
	}
	none := open(t, nil)
	none.refused("POST", "/api/reload", "", http.StatusNotFound, "not_found")
}
