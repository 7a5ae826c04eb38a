package egress

import "net/netip"

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

type network struct {
	prefix netip.Prefix
	class  class
}

// special lists the networks whose addresses are not public. classOf uses the first that contains the address, so narrow networks precede
// wide ones.
var special = []network{
	{netip.MustParsePrefix("168.63.129.16/32"), guarded},   // DNS and agent address of Azure
	{netip.MustParsePrefix("100.100.100.200/32"), guarded}, // metadata service of Alibaba Cloud
	{netip.MustParsePrefix("192.0.0.192/32"), guarded},     // metadata service of Oracle Cloud
	{netip.MustParsePrefix("0.0.0.0/8"), never},
	{netip.MustParsePrefix("10.0.0.0/8"), private},
	{netip.MustParsePrefix("100.64.0.0/10"), private}, // carrier-grade NAT
	{netip.MustParsePrefix("127.0.0.0/8"), private},
	{netip.MustParsePrefix("169.254.0.0/16"), guarded},
	{netip.MustParsePrefix("172.16.0.0/12"), private},
	{netip.MustParsePrefix("192.0.0.0/24"), private},
	{netip.MustParsePrefix("192.0.2.0/24"), private}, // documentation
	{netip.MustParsePrefix("192.88.99.0/24"), private},
	{netip.MustParsePrefix("192.168.0.0/16"), private},
	{netip.MustParsePrefix("198.18.0.0/15"), private},
	{netip.MustParsePrefix("198.51.100.0/24"), private},
	{netip.MustParsePrefix("203.0.113.0/24"), private},
	{netip.MustParsePrefix("224.0.0.0/4"), never},
	{netip.MustParsePrefix("240.0.0.0/4"), never},

	{netip.MustParsePrefix("fd00:ec2::/32"), guarded},    // metadata service of AWS
	{netip.MustParsePrefix("fd20:ce::254/128"), guarded}, // metadata service of Google Cloud
	{netip.MustParsePrefix("::/128"), never},
	{netip.MustParsePrefix("ff00::/8"), never},
	{netip.MustParsePrefix("fe80::/10"), guarded},
	{netip.MustParsePrefix("2001:db8::/32"), private},
	{netip.MustParsePrefix("2001::/23"), private}, // protocol assignments, Teredo among them
	{netip.MustParsePrefix("2002::/16"), private}, // 6to4
	{netip.MustParsePrefix("3fff::/20"), private},
}

// global contains the public addresses of IPv6. An address outside it is at least private: unique local, site-local, loopback, NAT64, and
// IPv4-compatible addresses.
var global = netip.MustParsePrefix("2000::/3")

func classOf(a netip.Addr) class {
	for i := range special {
		if special[i].prefix.Contains(a) {
			return special[i].class
		}
	}
	if a.Is4() || global.Contains(a) {
		return public
	}
	return private
}

var (
	nat64  = []netip.Prefix{netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48")}
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
	case nat64[0].Contains(a), nat64[1].Contains(a), compat.Contains(a) && a != netip.IPv6Loopback() && a != netip.IPv6Unspecified():
		return netip.AddrFrom4([4]byte(b[12:16])), true
	case sixTo4.Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	case teredo.Contains(a):
		return netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]}), true
	}
	return netip.Addr{}, false
}

// reachable reports whether the rules allow a connection to the address. named reports that Rules.Private contains the host name. If the
// address embeds an IPv4 address, that one must be reachable, too.
func (r *rules) reachable(a netip.Addr, named bool) bool {
	a = a.Unmap()
	if !a.IsValid() || a.Zone() != "" {
		return false
	}
	if inner, ok := embedded(a); ok && !r.reachable(inner, named) {
		return false
	}
	switch c := classOf(a); c {
	case public:
		return true
	case private:
		return named || r.inPrefix(a, private)
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
		if p.Contains(a) && (c != guarded || classOf(p.Addr()) == guarded && p.Bits() >= 10) {
			return true
		}
	}
	return false
}
