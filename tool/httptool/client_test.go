package httptool

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/egress"
)

func TestDefaultClientReachesOneOrigin(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ origin, allowed, refused string }{
		{"https://api.example.com", "https://api.example.com/a", "http://api.example.com/"},
		{"https://api.example.com", "https://api.example.com:443/", "https://api.example.com:8443/"},
		{"https://api.example.com:8443", "https://api.example.com:8443/", "https://api.example.com/"},
		{"https://api.example.com", "https://API.example.com/", "https://other.example.com/"},
		{"http://api.example.com", "http://api.example.com/", "https://api.example.com/"},
		{"http://api.example.com", "http://api.example.com:80/", "http://api.example.com:443/"},
		{"https://[2606:4700::7]:444", "https://[2606:4700::7]:444/", "https://[2606:4700::8]:444/"},
	} {
		c, err := clientOf(tt.origin)
		if err != nil {
			t.Errorf("%s: %v", tt.origin, err)
			continue
		}
		if err := c.Check(tt.allowed); err != nil {
			t.Errorf("%s refuses %s: %v", tt.origin, tt.allowed, err)
		}
		if c.Check(tt.refused) == nil {
			t.Errorf("%s allows %s", tt.origin, tt.refused)
		}
	}
	for _, origin := range []string{"https://", "https://a b", "https://*", "https://*.example.com", "https://x:0x50", "https://x:99999999999999999999"} {
		if _, err := clientOf(origin); err == nil {
			t.Errorf("%s is taken", origin)
		}
	}
}

func TestDefaultClientReachesNoPrivateAddress(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	for _, origin := range []string{srv.URL, "http://localhost" + srv.URL[strings.LastIndexByte(srv.URL, ':'):]} {
		_, err := New(&Definition{Name: "t", URL: origin, Allowlist: []string{"*"}}, nil, nil)
		if egress.CodeOf(err) != egress.CodeAddress || lathe.CodeOf(err) != lathe.CodeInvalidConfig {
			t.Errorf("%s: %v", origin, err)
		}
	}
}
