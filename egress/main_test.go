package egress

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"testing"

	"github.com/lathe-run/lathe/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// script answers look-ups by host, one answer after the other; the last one stays.
type script struct {
	mu      sync.Mutex
	answers map[string][][]string
	asked   int
}

func (s *script) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	queue := s.answers[host]
	if len(queue) == 0 {
		return nil, errors.New("no such host")
	}
	if len(queue) > 1 {
		s.answers[host] = queue[1:]
	}
	var out []netip.Addr
	for _, a := range queue[0] {
		out = append(out, netip.MustParseAddr(a))
	}
	return out, nil
}

// stopped ends a connection at the last moment before it would leave the machine.
var errStopped = errors.New("stopped before connecting")

// recorded returns a client that notes the addresses it would connect to, and connects to none.
func recorded(t *testing.T, r *Rules, resolver Resolver) (*Client, func() []string) {
	t.Helper()
	c, d, err := build(r, &Options{Resolver: resolver})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	var mu sync.Mutex
	var seen []string
	d.dialled = func(a netip.AddrPort) error {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, a.String())
		return errStopped
	}
	return c, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string(nil), seen...)
	}
}
