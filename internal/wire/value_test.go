package wire

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
)

func TestMembersKeepTheLastOfEqualNames(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 30} {
		members := []lathe.Member{{Name: "a", Value: []byte("1")}, {Name: "b"}, {Name: "a", Value: []byte("2")}}
		want := []lathe.Member{{Name: "a", Value: []byte("2")}}
		for i := len(members); i < n; i++ {
			m := lathe.Member{Name: fmt.Sprint("x", i), Value: []byte("0")}
			members, want = append(members, m), append(want, m)
		}
		if diff := cmp.Diff(want, last(members, nil)); diff != "" {
			t.Errorf("%d (-want +got):\n%s", n, diff)
		}
		got := string(JSON("{").Members(members, func(name string) bool { return strings.HasPrefix(name, "x") }))
		if got != `{"a":2` {
			t.Errorf("got %s", got)
		}
	}
}
