package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// maxAddresses bounds the addresses of one host that are tried.
const maxAddresses = 8

// A Resolver resolves host names. [net.Resolver] implements it. It may be called from several goroutines at once.
type Resolver interface {
	// LookupNetIP returns the addresses of a host, as [net.Resolver.LookupNetIP] does.
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// A dialer makes the connections of a client.
type dialer struct {
	rules    *rules
	resolver Resolver
	timeout  time.Duration
	// dialled, if set, is called before each connection that the rules allow. For tests.
	dialled func(netip.AddrPort) error
}

// dial resolves the host once, checks all its addresses, and connects to the checked addresses, so that no second resolution can return
// others. If one address is not allowed, dial fails.
func (d *dialer) dial(ctx context.Context, network, hostport string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	name, portText, err := net.SplitHostPort(hostport)
	if err != nil {
		return nil, refuse(CodeURL)
	}
	host, ok := PlainHost(name)
	if !ok || !d.rules.allows(host) {
		return nil, refuse(CodeHost)
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, refuse(CodePort)
	}
	addrs, err := d.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	for _, a := range addrs {
		if !d.rules.reachable(a, host) {
			return nil, refuse(CodeAddress)
		}
	}
	last := error(unsent(CodeConnect))
	for i, a := range addrs {
		conn, err := d.connect(ctx, network, host, netip.AddrPortFrom(a.Unmap(), uint16(port)), len(addrs)-i)
		if err == nil {
			return conn, nil
		}
		last = err
		if ctx.Err() != nil {
			break
		}
	}
	return nil, last
}

func (d *dialer) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	addrs, err := d.resolver.LookupNetIP(ctx, "ip", host)
	if err == nil && len(addrs) > 0 {
		return addrs[:min(len(addrs), maxAddresses)], nil
	}
	e := unsent(CodeResolve)
	if ctx.Err() != nil {
		e.cause = ctx.Err()
		e.Code = Plain(ctx.Err()).Code
	}
	return nil, e
}

// connect makes one connection. Its timeout is an equal share of the remaining time among the left addresses that are still to be tried.
func (d *dialer) connect(ctx context.Context, network, host string, to netip.AddrPort, left int) (net.Conn, error) {
	if deadline, ok := ctx.Deadline(); ok && left > 1 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(left))
		defer cancel()
	}
	nd := net.Dialer{ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		return d.control(host, address)
	}}
	conn, err := nd.DialContext(ctx, network, to.String())
	if err == nil {
		return conn, nil
	}
	if e := (*Error)(nil); errors.As(err, &e) {
		return nil, e
	}
	e := unsent(CodeConnect)
	if errors.Is(ctx.Err(), context.Canceled) {
		e.Code, e.cause = CodeCancelled, context.Canceled
	}
	return nil, e
}

// control checks the address again, as the net package is about to connect to it.
func (d *dialer) control(host, address string) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || !d.rules.reachable(to.Addr(), host) {
		return refuse(CodeAddress)
	}
	if !d.rules.anyPort && !slices.Contains(d.rules.ports, int(to.Port())) {
		return refuse(CodePort)
	}
	if d.dialled != nil {
		return d.dialled(to)
	}
	return nil
}
