package wire_test

import (
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/lathe-run/lathe/internal/wire"
)

func prefixOf(values ...string) wire.Prefix {
	var h wire.PrefixHash
	for _, v := range values {
		h.Add([]byte(v))
	}
	return h.Sum()
}

// What a server does not compare does not count, and all else does.
func TestPrefixHash(t *testing.T) {
	t.Parallel()
	const turn = `{"role":"user","content":[{"type":"text","text":"a \"cache_control\": b"}]}`
	for name, same := range map[string]string{
		"cache_control behind":   `{"role":"user","content":[{"type":"text","text":"a \"cache_control\": b","cache_control":{"type":"ephemeral","ttl":"1h"}}]}`,
		"cache_control in front": `{"role":"user","content":[{"cache_control" : null,"type":"text","text":"a \"cache_control\": b"}]}`,
		"white space":            "{ \"role\" : \"user\",\n\"content\":[ {\"type\":\"text\",\"text\":\"a \\\"cache_control\\\": b\"} ] }",
		"with a comma before it": "," + turn,
	} {
		if prefixOf(same) != prefixOf(turn) {
			t.Errorf("%s: the prefix is another one", name)
		}
	}
	seen := map[wire.Prefix]string{}
	for _, values := range [][]string{{turn}, {turn, turn}, {`["cache_control"]`}, {`[""]`}, {`[1,2]`}, {`[12]`}, {`["1","2"]`}, {`["12"]`}, {`[[1],2]`}, {`[1,[2]]`},
		{`[1]`, `[2]`}, {`[1],[2]`}, {`{"a":"b"}`}, {`{"b":"a"}`}, {`["a b"]`}, {`["ab"]`}, {`[true]`}, {`["true"]`}} {
		name := ""
		for _, v := range values {
			name += v + " | "
		}
		if other, has := seen[prefixOf(values...)]; has {
			t.Errorf("%s has the prefix of %s", name, other)
		}
		seen[prefixOf(values...)] = name
	}
	var pieces wire.PrefixHash
	pieces.Add([]byte(`[1,`), []byte(`{"a":2}`), []byte(`]`))
	if pieces.Sum() != prefixOf(`[1,{"a":2}]`) {
		t.Error("a value in pieces has another prefix")
	}
}

// A block is valid behind what it was written behind, unless the server has refused it there; of an unknown block nothing is known.
func TestBindings(t *testing.T) {
	t.Parallel()
	var b wire.Bindings
	one, two := prefixOf("1"), prefixOf("2")
	check := func(name, signature string, before wire.Prefix, want bool) {
		t.Helper()
		if got, refused := b.Valid(signature, before); got != want || refused != strings.HasPrefix(name, "refused,") {
			t.Errorf("%s: valid %v, refused %v", name, got, refused)
		}
	}
	check("unknown", "s", one, true)
	b.Written("s", one)
	check("written", "s", one, true)
	check("behind another text", "s", two, false)
	b.Refused("s", one)
	check("refused, written here", "s", one, false)
	b.Refused("t", one)
	check("refused, not written here", "t", one, false)
	check("refused behind another text", "t", two, true)
	for i := range 20_000 { // as many as are remembered
		b.Written("other "+strconv.Itoa(i), one)
	}
	check("forgotten", "s", two, true)
	check("the last", "other 19999", two, false)
}

// Several goroutines write and read the bindings of one entry, which forgets none of theirs.
func TestBindingsAtOnce(t *testing.T) {
	t.Parallel()
	var b wire.Bindings
	const goroutines, blocks = 8, 2000 // fewer than are remembered
	one, two := prefixOf("1"), prefixOf("2")
	valid := func(signature string, before wire.Prefix) bool {
		is, _ := b.Valid(signature, before)
		return is
	}
	signature := func(g, i int) string { return strconv.Itoa(g) + "/" + strconv.Itoa(i) }
	var done sync.WaitGroup
	for g := range goroutines {
		done.Go(func() {
			for i := range blocks {
				b.Written(signature(g, i), one)
				if i%2 == 1 {
					b.Refused(signature(g, i), one)
				}
				if !valid("of no one", one) || valid(signature(g, i), two) { // the others write meanwhile
					t.Errorf("block %d of goroutine %d is not what was noted", i, g)
				}
			}
		})
	}
	done.Wait()
	for g := range goroutines {
		for i := range blocks {
			if valid(signature(g, i), one) != (i%2 == 0) || valid(signature(g, i), two) {
				t.Fatalf("block %d of goroutine %d is not what was noted", i, g)
			}
		}
	}
}
