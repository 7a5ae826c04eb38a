package middleware

import (
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/lathe-run/lathe/internal/httpname"
)

// IsAddress reports whether a host is an IP address. A page that was rebound to this machine has to use a name.
func IsAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

// SameOrigin reports whether the request comes from no page, from a page of the server's own origin, of one of the
// trusted origins, or of loopback if the server is reached there, too. It looks at all methods, where
// [http.CrossOriginProtection] lets those pass that change nothing.
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
	return strings.EqualFold(u.Host, r.Host) || httpname.IsLoopback(u.Host) && httpname.IsLoopback(r.Host)
}
