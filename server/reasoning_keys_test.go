package server

import (
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/lathe-run/lathe"
)

// Two entries may write the same text: the signature says whose it is, and without one each entry gets it back.
func TestSignatureNamesTheAuthorOfReasoning(t *testing.T) {
	t.Parallel()
	o := &reasoningOrigins{}
	signed := func(data string) lathe.Reasoning { return lathe.Reasoning{Field: "thinking", Text: "hm", Data: data} }
	o.note("ann", "x", []lathe.Reasoning{signed("of x")})
	o.note("ann", "y", []lathe.Reasoning{signed("of y")})
	o.note("ann", "x", []lathe.Reasoning{{Field: "redacted_thinking", Data: "hidden"}, {Field: "thinking", Data: "no text"}})
	for _, tt := range []struct {
		name  string
		entry string
		r     lathe.Reasoning
		left  bool
	}{
		{"its own", "x", signed("of x"), false},
		{"of another entry", "y", signed("of x"), true},
		{"of the entry that wrote it last", "y", signed("of y"), false},
		{"the same text of the other one", "x", signed("of y"), true},
		{"text alone", "x", lathe.Reasoning{Text: "hm"}, false},
		{"text alone, for the other one", "y", lathe.Reasoning{Text: "hm"}, false},
		{"text alone, for a third", "z", lathe.Reasoning{Text: "hm"}, true},
		{"redacted", "x", lathe.Reasoning{Field: "redacted_thinking", Data: "hidden"}, false},
		{"redacted, of another entry", "y", lathe.Reasoning{Field: "redacted_thinking", Data: "hidden"}, true},
		{"a signature alone", "y", lathe.Reasoning{Field: "thinking", Data: "no text"}, true},
		{"unknown", "z", signed("from elsewhere"), false},
	} {
		said := []lathe.Message{lathe.User("a"), {Role: lathe.RoleAssistant, Parts: []lathe.Part{tt.r, lathe.Text{Text: "b"}}}}
		out, left, _ := o.apply("ann", tt.entry, said)
		if want := map[bool][]string{true: {"messages[1].parts[0]"}}[tt.left]; !slices.Equal(left, want) || len(out[1].Parts) != 2-len(want) {
			t.Errorf("%s: left out %q of %d parts", tt.name, left, len(out[1].Parts))
		}
		if out, left, changed := o.apply("bob", tt.entry, said); changed || len(left) > 0 || len(out[1].Parts) != 2 {
			t.Errorf("%s: the reasoning of another key's client is left out", tt.name)
		}
	}
}

// Answers of several entries end while requests ask whose reasoning they have. No request leaves out reasoning of its entry, and each key is
// stored once.
func TestOriginsAtOnce(t *testing.T) {
	t.Parallel()
	o := &reasoningOrigins{}
	const goroutines, answers, keys = 8, 450, 8 // fewer keys than are stored: of both signatures, the text and the text of both, with and without the entry
	var done sync.WaitGroup
	for g := range goroutines {
		entry, text := "entry "+strconv.Itoa(g), func(i int) string { return strconv.Itoa(g) + "/" + strconv.Itoa(i) }
		done.Go(func() {
			for i := range answers {
				wrote := lathe.Reasoning{Field: "thinking", Text: text(i), Data: "signed " + text(i)}
				o.note("ann", entry, []lathe.Reasoning{wrote, {Field: "thinking", Text: text(i), Data: "again " + text(i)}})
				history := []lathe.Message{{Role: lathe.RoleAssistant, Parts: []lathe.Part{wrote}}}
				if _, left, _ := o.apply("ann", entry, history); len(left) > 0 {
					t.Errorf("the own reasoning %s is left out", text(i))
				}
				if _, left, _ := o.apply("bob", entry, history); len(left) > 0 {
					t.Errorf("reasoning of another key, %s, is left out", text(i))
				}
			}
		})
	}
	done.Wait()
	if n := goroutines * answers * keys; len(o.of) != n || len(o.ring) != n {
		t.Errorf("%d keys in %d places, want %d", len(o.of), len(o.ring), n)
	}
	for _, key := range o.ring {
		if _, has := o.of[key]; !has {
			t.Fatal("a key has a place and no member")
		}
	}
}
