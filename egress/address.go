package egress

import "net/netip"

// class sorts addresses by what it takes to reach them.
type class uint8

const (
	public class = iota
	// private addresses are reached where Rules.Private names the host or a prefix around the address.
	private
	// guarded addresses are those of metadata services, which give credentials to every caller, and those of the link. Only a prefix
	// that holds nothing else lets them through.
	guarded
	// never are those that no request is meant for.
	never
)

type network struct {
	prefix netip.Prefix
	class  class
}

// special are the networks that are not public, the narrower before the wider.
var special = []network{
	{netip.MustParsePrefix("168.63.129.16/32"), guarded},   // host of a virtual machine
	{netip.MustParsePrefix("100.100.100.200/32"), guarded}, // metadata
	{netip.MustParsePrefix("192.0.0.192/32"), guarded},     // metadata
	{netip.MustParsePrefix("0.0.0.0/8"), never},
	{netip.MustParsePrefix("10.0.0.0/8"), private},
	{netip.MustParsePrefix("100.64.0.0/10"), private}, // carriers' NAT
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

	{netip.MustParsePrefix("fd00:ec2::/32"), guarded},    // metadata
	{netip.MustParsePrefix("fd20:ce::254/128"), guarded}, // metadata
	{netip.MustParsePrefix("::/128"), never},
	{netip.MustParsePrefix("ff00::/8"), never},
	{netip.MustParsePrefix("fe80::/10"), guarded},
	{netip.MustParsePrefix("2001:db8::/32"), private},
	{netip.MustParsePrefix("2001::/23"), private}, // protocol assignments, Teredo among them
	{netip.MustParsePrefix("2002::/16"), private}, // 6to4
	{netip.MustParsePrefix("3fff::/20"), private},
}

// global is where IPv6 has its public addresses. Whatever is outside is private at least: unique
// local and site-local addresses, loopback, NAT64, IPv4-compatible ones.
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

// embedded returns the IPv4 address that an IPv6 address stands for, where it does.
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

// reachable reports whether the rules let a request for host go to the address. named says that
// Rules.Private holds the host.
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

// inPrefix reports whether a named prefix holds the address. For a guarded address it must hold
// nothing of a lower class: 0.0.0.0/0 does not open the metadata service.
func (r *rules) inPrefix(a netip.Addr, c class) bool {
	for _, p := range r.prefixes {
		if p.Contains(a) && (c != guarded || classOf(p.Addr()) == guarded && p.Bits() >= 10) {
			return true
		}
	}
	return false
}
