package rawjson

import (
	"sync"
	"testing"
)

func TestNamesFindOtherSpellings(t *testing.T) {
	t.Parallel()
	n := NewNames("model", "store", "tools", "k")
	for obj, want := range map[string]string{
		`{"model":1,"store":2}`:       "",
		`{"Model":1}`:                 "Model",
		`{"model":1,"MODEL":2}`:       "MODEL",
		`{"ſtore":1}`:                 "ſtore",
		`{"\u017ftore":1}`:            "ſtore",
		`{"a":{"Model":1}}`:           "",
		"{\"\u212a\":1}":              "\u212a",
		`{"\u006dodel":1}`:            "",
		`{"\u004dodel":1}`:            "Model",
		`{"modell":1,"mode":2}`:       "",
		`{"":1,"\ud800odel":2}`:       "",
		`[{"Model":1}]`:               "",
		`{"x":1,"tool\u017f":"y"}`:    "toolſ",
		`{"TOOLS":1,"k":1,"Store":1}`: "TOOLS",
	} {
		got := ""
		for key := range Members([]byte(obj)) {
			if got, _ = n.LikeKey(key); got != "" {
				break
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", obj, got, want)
		}
	}
	if n.Like("model") != "" || n.Like("mOdel") != "model" || !n.Has("k") || n.Has("K") {
		t.Error("Like or Has")
	}
}

// The first readers of a set, which make its maps, may be several goroutines.
func TestNamesAreReadByManyAtFirst(t *testing.T) {
	t.Parallel()
	n := NewNames("model", "store")
	var readers sync.WaitGroup
	for _, read := range []func() bool{
		func() bool { return n.Has("model") && !n.Has("Model") },
		func() bool { name, ok := n.Exact([]byte(`"store"`)); return ok && name == "store" },
		func() bool { return n.Like("STORE") == "store" },
		func() bool { member, name := n.LikeKey([]byte(`"Model"`)); return member == "Model" && name == "model" },
	} {
		readers.Go(func() {
			if !read() {
				t.Error("wrong answer of a first reader")
			}
		})
	}
	readers.Wait()
}
