package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/server"
)

// The pages of GET /api/keys have each key once, in the order of the names, whatever order the configuration has.
func TestKeysArePaged(t *testing.T) {
	t.Parallel()
	f := serve(t, &setting{opts: func(o *server.Options) {
		root := key("root")
		root.Admin = true
		o.Setup.Keys = []server.Key{root}
		for i := range 249 {
			o.Setup.Keys = append(o.Setup.Keys, key(fmt.Sprintf("key-%03d", (i*7)%249)))
		}
	}})
	type page struct {
		Data []struct{ Name string }
		Next string
	}
	get := func(query string, header ...string) page {
		t.Helper()
		resp, body := f.do(http.MethodGet, "/api/keys"+query, "", header...)
		var p page
		if err := json.Unmarshal([]byte(body), &p); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %v %s", query, resp.StatusCode, err, body)
		}
		return p
	}
	for query, sizes := range map[string][]int{"": {100, 100, 50}, "?limit=125": {125, 125}, "?limit=1000": {250}} {
		var names []string
		for p, n := get(query), 0; ; n++ {
			if n == len(sizes) || len(p.Data) != sizes[n] || (p.Next == "") != (n == len(sizes)-1) {
				t.Fatalf("%q: page %d has %d keys, next %q", query, n, len(p.Data), p.Next)
			}
			for _, k := range p.Data {
				names = append(names, k.Name)
			}
			if p.Next == "" {
				break
			}
			more := "?after=" + p.Next
			if query != "" {
				more = query + "&after=" + p.Next
			}
			p = get(more)
		}
		if len(names) != 250 || !slices.IsSorted(names) || len(slices.Compact(names)) != 250 {
			t.Errorf("%q: %d names: %.200q", query, len(names), names)
		}
	}
	if p := get("?after=key-1005&limit=1"); len(p.Data) != 1 || p.Data[0].Name != "key-101" { // a name that a reload removed
		t.Errorf("after a name of no key: %+v", p)
	}
	if p := get("", "Authorization", "Bearer "+text("key-200")); len(p.Data) != 1 || p.Data[0].Name != "key-200" || p.Next != "" {
		t.Errorf("the page of a key that is no admin key: %+v", p)
	}
	for _, limit := range []string{"0", "-1", "1001", "x"} {
		if resp, body := f.do(http.MethodGet, "/api/keys?limit="+limit, ""); resp.StatusCode != http.StatusBadRequest || !strings.Contains(body, "limit wants a number from 1 to 1000") {
			t.Errorf("limit %s: %d %s", limit, resp.StatusCode, body)
		}
	}
}
