package wire

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

func TestMembersKeepTheLastOfEqualNames(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 30} { // a few, and many
		members := []lathe.Member{{Name: "a", Value: []byte("1")}, {Name: "b"}, {Name: "a", Value: []byte("2")}}
		want := []lathe.Member{{Name: "a", Value: []byte("2")}}
		for i := len(members); i < n; i++ {
			m := lathe.Member{Name: fmt.Sprint("x", i), Value: []byte("0")}
			members, want = append(members, m), append(want, m)
		}
		if diff := cmp.Diff(want, Last(members)); diff != "" {
			t.Errorf("%d (-want +got):\n%s", n, diff)
		}
		got := string(JSON("{").Members(members, func(name string) bool { return strings.HasPrefix(name, "x") }))
		if got != `{"a":2` {
			t.Errorf("got %s", got)
		}
	}
	same := []lathe.Member{{Name: "a", Value: []byte("1")}, {Name: "b", Value: []byte("2")}}
	if got := Last(same); &got[0] != &same[0] || len(got) != 2 {
		t.Errorf("got %v", got)
	}
	read := Members([]byte(`{"a":1,"b":null,"c":{"d":2}}`), func(name string) bool { return name == "a" })
	if diff := cmp.Diff([]lathe.Member{{Name: "c", Value: []byte(`{"d":2}`)}}, read); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
}

func TestValuesAreReadStrictly(t *testing.T) {
	t.Parallel()
	bad := map[string]*APIError{}
	_, bad["string"] = ParseString([]byte("1"), "p")
	_, bad["bool"] = ParseBool([]byte(`"true"`), "p")
	_, bad["float"] = ParseFloat([]byte(`"1"`), "p")
	_, bad["int"] = ParseInt([]byte("1.5"), "p")
	_, bad["count"] = ParseCount([]byte("0"), "p")
	_, bad["large count"] = ParseCount([]byte("2147483648"), "p")
	_, bad["pointer"] = ParsePointer([]byte("x"), "p", ParseFloat)
	bad["object"], bad["array"] = NeedObject([]byte("[]"), "p"), NeedArray([]byte("{}"), "p")
	for name, err := range bad {
		if err == nil || err.Status != 400 || err.Param != "p" || err.Type != "invalid_request_error" {
			t.Errorf("%s: %+v", name, err)
		}
	}
	if n, err := ParseCount([]byte("2147483647"), "p"); n != 2147483647 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	names := rawjson.NewNames("stream")
	if err := RejectAmbiguousMember([]byte(`{"\u017ftream":true}`), names, "at"); err == nil || err.Code != "ambiguous_member" || !strings.HasPrefix(err.Param, "at.") {
		t.Errorf("got %+v", err)
	}
	if err := RejectAmbiguousMember([]byte(`{"stream":true}`), names, ""); err != nil {
		t.Errorf("got %+v", err)
	}
}
