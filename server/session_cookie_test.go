package server

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Under TLS no other host and no port without TLS can set the cookies of sessions and sign-ins: browsers take a name with __Host-
// only with Secure, the path / and no domain.
func TestCookiesAreOfTheHostUnderTLS(t *testing.T) {
	t.Parallel()
	for _, secure := range []bool{false, true} {
		r := httptest.NewRequest(http.MethodGet, "http://lathe.example.com:8443/", nil)
		if secure {
			r.TLS = &tls.ConnectionState{}
		}
		w := httptest.NewRecorder()
		http.SetCookie(w, sessionCookie(r, "id"))
		setSignInCookie(w, r, &caller{access: access{setup: &setup{}}}, "state")
		for _, ck := range w.Result().Cookies() {
			if strings.HasPrefix(ck.Name, "__Host-lathe_") != secure || !strings.HasSuffix(ck.Name, "_8443") {
				t.Errorf("TLS %t: %s", secure, ck.Name)
			}
			if secure && (!ck.Secure || ck.Path != "/" || ck.Domain != "") {
				t.Errorf("browsers refuse %s", ck)
			}
		}
	}
}
