package egress

import (
	"net/netip"
	"slices"
)

// A class of addresses says which entry of Rules.Private, if any, a request needs to reach them.
type class uint8

const (
	public class = iota
	// private addresses are reached if Rules.Private contains the host name or a prefix that contains the address.
	private
	// guarded addresses are link-local addresses and those of metadata services, which give credentials to every caller. They are reached
	// only by a prefix in Rules.Private that contains guarded addresses alone.
	guarded
	// never are addresses that no request may be sent to: unspecified, multicast and reserved ones.
	never
)

// special has the networks whose addresses are not public. Some guarded networks are within private ones.
var special = map[class][]netip.Prefix{
	guarded: prefixes(
		"168.63.129.16/32",   // DNS and agent address of Azure
		"100.100.100.200/32", // metadata service of Alibaba Cloud
		"192.0.0.192/32",     // metadata service of Oracle Cloud
		"169.254.0.0/16",
		"fd00:ec2::/32",    // metadata service of AWS
		"fd20:ce::254/128", // metadata service of Google Cloud
		"fe80::/10",
	),
	never: prefixes(
		"0.0.0.0/8",
		"224.0.0.0/4",
		"240.0.0.0/4",
		"::/128",
		"ff00::/8",
	),
	private: prefixes(
		"10.0.0.0/8",
		"100.64.0.0/10", // carrier-grade NAT
		"127.0.0.0/8",
		"172.16.0.0/12",
		"192.0.0.0/24",
		"192.0.2.0/24", // documentation
		"192.88.99.0/24",
		"192.168.0.0/16",
		"198.18.0.0/15",
		"198.51.100.0/24",
		"203.0.113.0/24",
		"2001:db8::/32",
		"2001::/23", // protocol assignments, Teredo among them
		"2002::/16", // 6to4
		"3fff::/20",
	),
}

func prefixes(texts ...string) (out []netip.Prefix) {
	for _, t := range texts {
		out = append(out, netip.MustParsePrefix(t))
	}
	return out
}

func within(list []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(a) })
}

// global contains the public addresses of IPv6. An address outside it is at least private: unique local, site-local, loopback, NAT64, and
// IPv4-compatible addresses.
var global = netip.MustParsePrefix("2000::/3")

func classOf(a netip.Addr) class {
	for _, c := range []class{guarded, never, private} {
		if within(special[c], a) {
			return c
		}
	}
	if a.Is4() || global.Contains(a) {
		return public
	}
	return private
}

var (
	nat64  = prefixes("64:ff9b::/96", "64:ff9b:1::/48")
	compat = netip.MustParsePrefix("::/96")
	sixTo4 = netip.MustParsePrefix("2002::/16")
	teredo = netip.MustParsePrefix("2001::/32")
)

// embedded returns the IPv4 address that an IPv6 address contains: NAT64, IPv4-compatible, 6to4 and Teredo. ok is false if it contains
// none.
func embedded(a netip.Addr) (netip.Addr, bool) {
	if !a.Is6() {
		return netip.Addr{}, false
	}
	b := a.As16()
	switch {
	case within(nat64, a), compat.Contains(a) && a != netip.IPv6Loopback() && a != netip.IPv6Unspecified():
		return netip.AddrFrom4([4]byte(b[12:16])), true
	case sixTo4.Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	case teredo.Contains(a):
		return netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]}), true
	}
	return netip.Addr{}, false
}

// reachable reports whether the rules allow a connection to an address of the host. If the address embeds an IPv4 address, that one must be
// reachable, too.
func (r *rules) reachable(a netip.Addr, host string) bool {
	a = a.Unmap()
	if !a.IsValid() || a.Zone() != "" {
		return false
	}
	if inner, ok := embedded(a); ok && !r.reachable(inner, host) {
		return false
	}
	switch c := classOf(a); c {
	case public:
		return true
	case private:
		return r.named[host] || r.inPrefix(a, private)
	case guarded:
		return r.inPrefix(a, guarded)
	default:
		return false
	}
}

// inPrefix reports whether a prefix of Rules.Private contains the address. A guarded address needs a prefix that contains guarded addresses
// alone: 0.0.0.0/0 does not open the metadata service.
func (r *rules) inPrefix(a netip.Addr, c class) bool {
	for _, p := range r.prefixes {
		guardedAlone := classOf(p.Addr()) == guarded && p.Bits() >= 10 // no guarded network has fewer bits: see special
		if p.Contains(a) && (c != guarded || guardedAlone) {
			return true
		}
	}
	return false
}
