package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"

	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
)

// The pages of the budgets of GET /api/usage have each key and group with a budget once, in the order of the names.
func TestBudgetsArePaged(t *testing.T) {
	t.Parallel()
	testdata.WithoutRace(t)
	const keys, groups = 130, 10
	f := serve(t, &setting{opts: func(o *server.Options) {
		o.Ledger = store.NewMemory(nil)
		root := key("root")
		root.Admin = true
		o.Setup.Keys = []server.Key{root}
		budget := &store.Budget{Day: store.Limit{Nanos: -1, Tokens: 10}, Month: store.Limit{Nanos: -1, Tokens: 100}}
		for i := range keys {
			k := key(fmt.Sprintf("key-%03d", (i*7)%keys))
			k.Budget, k.Group, k.GroupBudget = budget, fmt.Sprintf("g%d", i%groups), &store.Budget{Day: store.NoLimit, Month: budget.Month}
			o.Setup.Keys = append(o.Setup.Keys, k)
		}
	}})
	type page struct {
		Budgets []struct{ Kind, Name, Period string }
		Next    string
	}
	get := func(query url.Values, header ...string) page {
		t.Helper()
		resp, body := f.do(http.MethodGet, "/api/usage?"+query.Encode(), "", header...)
		var p page
		if err := json.Unmarshal([]byte(body), &p); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%v: %d %v %s", query, resp.StatusCode, err, body)
		}
		return p
	}
	for limit, pages := range map[string]int{"": 2, "1000": 1, "130": 2, "140": 1, "1": 140, "65": 3} {
		var got []string
		after := ""
		for n := 1; ; n++ {
			q := url.Values{"after": {after}}
			if limit != "" {
				q.Set("limit", limit)
			}
			p := get(q)
			for _, b := range p.Budgets {
				got = append(got, fmt.Sprintf("%s %s %d", b.Kind, b.Name, len(b.Period)))
			}
			if (p.Next == "") != (n == pages) || n > pages {
				t.Fatalf("limit %q: page %d has next %q", limit, n, p.Next)
			}
			if after = p.Next; after == "" {
				break
			}
		}
		var want []string
		for i := range keys {
			want = append(want, fmt.Sprintf("key key-%03d 10", i), fmt.Sprintf("key key-%03d 7", i))
		}
		for i := range groups {
			want = append(want, fmt.Sprintf("group g%d 7", i))
		}
		if !slices.Equal(got, want) {
			t.Errorf("limit %q: %d budgets, want %d: %.300q", limit, len(got), len(want), got)
		}
	}
	if p := get(url.Values{"after": {"key:key-1005"}, "limit": {"1"}}); len(p.Budgets) != 2 || p.Budgets[0].Name != "key-101" { // a name that a reload removed
		t.Errorf("after a name of no key: %+v", p)
	}
	if p := get(nil, "Authorization", "Bearer "+text("key-020")); len(p.Budgets) != 3 || p.Budgets[0].Name != "key-020" || p.Budgets[2].Kind != "group" || p.Next != "" {
		t.Errorf("the budgets of a key that is no admin key: %+v", p)
	}
	for query, want := range map[string]string{"limit=0": "limit", "limit=1001": "limit", "after=key-001": "after", "after=model:a": "after"} {
		var p struct{ Param string }
		resp, body := f.do(http.MethodGet, "/api/usage?"+query, "")
		if err := json.Unmarshal([]byte(body), &p); err != nil || resp.StatusCode != http.StatusBadRequest || p.Param != want {
			t.Errorf("%s: %d %v %s", query, resp.StatusCode, err, body)
		}
	}
}
