package middleware

import (
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/lathe-run/lathe/internal/httpname"
)

// IsAddress reports whether a host is an IP address. DNS rebinding requires a host name, so that addresses are not affected by it.
func IsAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

// SameOrigin reports whether the request was not sent by a page, or by a page of the server's own origin, of a trusted origin, or of
// loopback if the server is also reached on loopback. It checks requests of all methods, where [http.CrossOriginProtection] accepts all
// GET, HEAD and OPTIONS requests.
func SameOrigin(r *http.Request, trusted []string) bool {
	origins := r.Header.Values("Origin")
	crossSite := strings.EqualFold(r.Header.Get("Sec-Fetch-Site"), "cross-site")
	switch {
	case len(origins) == 0:
		return !crossSite
	case len(origins) > 1:
		return false
	case slices.Contains(trusted, origins[0]):
		return true
	}
	u, err := url.Parse(origins[0])
	if crossSite || err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	onLoopback := httpname.IsLoopback(u.Host) && httpname.IsLoopback(r.Host)
	return onLoopback || strings.EqualFold(u.Host, r.Host)
}
