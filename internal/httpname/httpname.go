// Package httpname compares the servers that URLs, Host headers and network addresses name, and checks names of header fields.
package httpname

import (
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// Origin returns the origin of a URL: its scheme, host and port in lower case, with the default port of http and https written
// out. Two URLs with equal origins are served by the same server.
func Origin(u *url.URL) string {
	scheme, port := strings.ToLower(u.Scheme), u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[scheme]
	}
	return scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// Host returns the host of an address without its port, the brackets of IPv6 and a final dot, in lower case.
func Host(address string) string {
	host := address
	if h, _, err := net.SplitHostPort(address); err == nil {
		host = h
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// IsLoopback reports whether a host, with or without a port, is localhost or a loopback address, IPv4-mapped IPv6 addresses included. It
// returns false for other names, which can resolve to any address.
func IsLoopback(host string) bool {
	host = Host(host)
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

// IsToken reports whether s is a token of RFC 9110 section 5.6.2, such as the name of a header field.
func IsToken(s string) bool {
	return s != "" && strings.Trim(s, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}
