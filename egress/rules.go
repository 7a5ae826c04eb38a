package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Rules are the conditions that a request must meet to be sent. The zero Rules allow no request.
type Rules struct {
	// Hosts are the hosts that requests may be sent to: a name or an address ("api.example.com", "10.0.0.7", "2001:db8::7"),
	// "*.example.com" for every name below example.com, or "*" for all.
	Hosts []string
	// Schemes are "https", "http" or both; nil: https only; empty but not nil: none.
	Schemes []string
	// Ports are the ports that requests may be sent to; nil: 443, and 80 if http is allowed; empty but not nil: none.
	Ports []int
	// AnyPort allows every port; Ports is ignored. It is for URLs that another server supplies, such as those of authorization servers.
	// Private addresses still need an entry in Private.
	AnyPort bool
	// Private lists addresses that requests may reach although they are not public. An entry is a prefix ("10.1.0.0/16"), an address, or a
	// host name, which then may resolve to private and loopback addresses. Link-local addresses and those of metadata services are reached
	// only through a prefix or address that contains them; multicast and unspecified addresses are never reached. An entry allows the
	// address only: Hosts must list the host, too.
	Private []string
}

// rules are the compiled form of Rules.
type rules struct {
	any      bool
	hosts    map[string]bool
	suffixes []string // each begins with a dot
	schemes  []string
	ports    []int
	anyPort  bool
	named    map[string]bool // the host names in Rules.Private
	prefixes []netip.Prefix
}

func (in *Rules) compile() (*rules, error) {
	r := &rules{
		hosts: map[string]bool{}, named: map[string]bool{},
		schemes: slices.Clone(in.Schemes), ports: slices.Clone(in.Ports), anyPort: in.AnyPort,
	}
	for _, h := range in.Hosts {
		if err := r.addHost(h); err != nil {
			return nil, err
		}
	}
	if r.schemes == nil {
		r.schemes = []string{"https"}
	}
	for _, s := range r.schemes {
		if s != "https" && s != "http" {
			return nil, errors.New("egress: a scheme is https or http")
		}
	}
	if r.ports == nil {
		r.ports = []int{443}
		if slices.Contains(r.schemes, "http") {
			r.ports = append(r.ports, 80)
		}
	}
	for _, p := range in.Private {
		if err := r.addPrivate(p); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// addHost adds an entry of Rules.Hosts.
func (r *rules) addHost(entry string) error {
	if entry == "*" {
		r.any = true
		return nil
	}
	suffix, isWildcard := strings.CutPrefix(entry, "*")
	host, ok := PlainHost(strings.TrimPrefix(suffix, "."))
	if !ok || isWildcard && (!strings.HasPrefix(suffix, ".") || isAddress(host)) {
		return fmt.Errorf("egress: %.80q is not a host: write a name in ASCII, an address, *.name or *", entry)
	}
	if isWildcard {
		r.suffixes = append(r.suffixes, "."+host)
	} else {
		r.hosts[host] = true
	}
	return nil
}

// addPrivate adds an entry of Rules.Private.
func (r *rules) addPrivate(entry string) error {
	if prefix, err := netip.ParsePrefix(entry); err == nil {
		if prefix != prefix.Masked() {
			return fmt.Errorf("egress: the prefix %s has bits beyond its length: write %s", prefix, prefix.Masked())
		}
		r.prefixes = append(r.prefixes, prefix)
		return nil
	}
	host, ok := PlainHost(entry)
	if !ok {
		return fmt.Errorf("egress: %.80q is neither a prefix, nor an address, nor a host name", entry)
	}
	if a, err := netip.ParseAddr(host); err == nil {
		r.prefixes = append(r.prefixes, netip.PrefixFrom(a, a.BitLen()))
	} else {
		r.named[host] = true
	}
	return nil
}

// checkURL checks all that is known of a request before its host is resolved.
func (r *rules) checkURL(u *url.URL) *Error {
	if u == nil || u.User != nil || u.Opaque != "" || u.Host == "" {
		return refuse(CodeURL)
	}
	if !slices.Contains(r.schemes, u.Scheme) {
		return refuse(CodeScheme)
	}
	host, ok := PlainHost(u.Hostname())
	if !ok {
		return refuse(CodeURL)
	}
	if !r.allows(host) {
		return refuse(CodeHost)
	}
	port, ok := portOf(u)
	if !ok {
		return refuse(CodeURL)
	}
	if !r.anyPort && !slices.Contains(r.ports, port) {
		return refuse(CodePort)
	}
	if a, err := netip.ParseAddr(host); err == nil {
		if !r.reachable(a, host) {
			return refuse(CodeAddress)
		}
	} else if isLocalName(host) && !r.named[host] {
		return refuse(CodeAddress)
	}
	return nil
}

func (r *rules) allows(host string) bool {
	if r.any || r.hosts[host] {
		return true
	}
	return !isAddress(host) && slices.ContainsFunc(r.suffixes, func(s string) bool { return strings.HasSuffix(host, s) })
}

// PlainHost returns the host in lower case. ok is true for names of ASCII letters, digits, hyphens and underscores, and for addresses in
// their usual form. ok is false for forms that resolvers read as an IPv4 address although they do not look like one (octal, hexadecimal, a
// single number, fewer than four parts), for IPv4 within IPv6, for zones, and for a dot at the end.
func PlainHost(s string) (string, bool) {
	if a, err := netip.ParseAddr(s); err == nil {
		return a.String(), a.Zone() == "" && !a.Is4In6()
	}
	if s == "" || len(s) > 253 {
		return "", false
	}
	s = strings.ToLower(s)
	labels := strings.Split(s, ".")
	for _, l := range labels {
		if l == "" || len(l) > 63 || l[0] == '-' || l[len(l)-1] == '-' || strings.Trim(l, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return "", false
		}
	}
	return s, !isNumber(labels[len(labels)-1])
}

// isNumber reports whether label, the last label of a host, is a number, so that resolvers read the host as an IPv4 address.
func isNumber(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

// isLocalName reports whether resolvers resolve the name to a loopback address without a name server.
func isLocalName(host string) bool {
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

func portOf(u *url.URL) (int, bool) {
	if p := u.Port(); p != "" {
		n, err := strconv.ParseUint(p, 10, 16)
		return int(n), err == nil && n > 0
	}
	if strings.HasSuffix(u.Host, ":") {
		return 0, false
	}
	if u.Scheme == "http" {
		return 80, true
	}
	return 443, true
}

// origin returns scheme, host and port of a URL that checkURL has allowed.
func origin(u *url.URL) string {
	port, _ := portOf(u)
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + strconv.Itoa(port)
}
