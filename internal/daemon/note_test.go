package daemon

import (
	"net"
	"testing"
)

// The address that a gateway leaves is one that this machine reaches.
func TestReachableAddress(t *testing.T) {
	t.Parallel()
	for listen, want := range map[string]string{"0.0.0.0:87": "127.0.0.1:87", "[::]:87": "[::1]:87", "127.0.0.1:87": "127.0.0.1:87", "10.0.3.7:87": "10.0.3.7:87"} {
		a, err := net.ResolveTCPAddr("tcp", listen)
		if err != nil {
			t.Fatal(err)
		}
		if got := reachable(a); got != want {
			t.Errorf("%s: %s, want %s", listen, got, want)
		}
	}
}
