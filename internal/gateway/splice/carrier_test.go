package splice

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/seal"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/store"
)

// carrierRequest returns a request of a conversation, as far as Carriers need it.
func carrierRequest(key, session string, messages ...lathe.Message) *Request {
	return &Request{Owner: Owner{Principal: key}, Session: session, Messages: messages}
}

func carrierTurns(keys ...string) *Turns {
	var secrets [2]secret.Secret
	for i, k := range keys {
		secrets[i] = secret.New(strings.Repeat(k, seal.KeySize))
	}
	k, err := seal.NewKeys(secrets[0], secrets[1], nil)
	if err != nil {
		panic(err)
	}
	return New(&Options{Seals: k})
}

func call(id, name string) lathe.ToolCall {
	return lathe.ToolCall{ID: id, Name: name, Arguments: `{"n":1}`}
}

func said(parts ...lathe.Part) lathe.Message {
	return lathe.Message{Role: lathe.RoleAssistant, Parts: parts}
}

func answer(id, name, text string) lathe.Message {
	return lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: id, Name: name, Content: text}}}
}

func carrierOf(text string) lathe.Part {
	return lathe.Reasoning{Field: "encrypted_content", Data: text}
}

// sealed returns what a carrier of these messages is, in an answer to the request.
func sealed(t *testing.T, ht *Turns, a *Request, own ...lathe.Message) string {
	t.Helper()
	c := ht.NewCarriers(t.Context(), a, "run_1")
	text := c.End(own, func(lathe.ToolCall) bool { return false }, nil)
	if text == "" {
		t.Fatal("there is no carrier")
	}
	return text
}

func opened(t *testing.T, ht *Turns, a *Request) *Spliced {
	t.Helper()
	j := &Spliced{Messages: a.Messages}
	ht.Open(t.Context(), a, j)
	return j
}

// What the model saw comes back in its place, between what the client has seen before and what it says next.
func TestCarrierRestoresHiddenTurns(t *testing.T) {
	t.Parallel()
	ht := carrierTurns("k")
	ask := lathe.User("What is 7 + 35?")
	thought := lathe.Reasoning{Field: "thinking", Data: "EqQB", Entry: "claude"}
	first := []lathe.Message{said(thought, lathe.Text{Text: "Let me see."}, call("s1", "add")), answer("s1", "add", "42")}
	second := []lathe.Message{said(lathe.Text{Text: "Now I read."}, call("s2", "note"), call("c1", "read")), answer("s2", "note", "noted")}
	a := carrierRequest("key", "", ask)
	c := ht.NewCarriers(t.Context(), a, "run_1")
	client := func(x lathe.ToolCall) bool { return x.Name == "read" }
	one := c.End(first, client, nil)
	two := c.End(slices.Concat(first, second), client, nil)
	if one == "" || two == "" {
		t.Fatal("a carrier is missing")
	}

	back := carrierRequest("key", "", ask,
		said(lathe.Text{Text: "Let me see."}, carrierOf(one), lathe.Text{Text: "Now I read."}, carrierOf(two), call("c1", "read")),
		answer("c1", "read", "content"), lathe.User("And now?"))
	j := opened(t, ht, back)
	want := slices.Concat([]lathe.Message{ask}, first, second, []lathe.Message{answer("c1", "read", "content"), lathe.User("And now?")})
	if diff := cmp.Diff(want, j.Messages); diff != "" || j.Lost != 0 || !j.Changed {
		t.Errorf("lost %d, changed %v (-want +got):\n%s", j.Lost, j.Changed, diff)
	}
	if len(back.Messages[1].Parts) != 5 {
		t.Error("the request was changed")
	}

	end := carrierRequest("key", "", ask, said(lathe.Text{Text: "Let me see."}, carrierOf(one), lathe.Text{Text: "It is 42."}), lathe.User("Sure?"))
	want = slices.Concat([]lathe.Message{ask}, first, []lathe.Message{said(lathe.Text{Text: "It is 42."}), lathe.User("Sure?")})
	if diff := cmp.Diff(want, opened(t, ht, end).Messages); diff != "" {
		t.Errorf("the last turn is text (-want +got):\n%s", diff)
	}
}

// SPEC 17.15: a carrier of another key, user, session or position is refused. Nothing of it remains in what models get.
func TestCarrierOfAnotherConversationIsRefused(t *testing.T) {
	t.Parallel()
	ht := carrierTurns("k")
	ask, own := lathe.User("hello"), []lathe.Message{said(call("s1", "add")), answer("s1", "add", "42")}
	a := carrierRequest("key", "session", ask)
	text := sealed(t, ht, a, own...)
	shown := said(carrierOf(text), lathe.Text{Text: "It is 42."})
	changed := []byte(text)
	changed[len(text)/2] ^= 1 // not the last one, which has bits of padding
	other := carrierRequest("key", "session", ask, shown)
	other.Owner.User = "another"
	for name, b := range map[string]*Request{
		"key":          carrierRequest("other", "session", ask, shown),
		"session":      carrierRequest("key", "other", ask, shown),
		"user":         other,
		"position":     carrierRequest("key", "session", lathe.User("hello!"), shown),
		"later":        carrierRequest("key", "session", ask, said(lathe.Text{Text: "x"}), ask, shown),
		"changed":      carrierRequest("key", "session", ask, said(carrierOf(string(changed)), lathe.Text{Text: "It is 42."})),
		"not a seal":   carrierRequest("key", "session", ask, said(carrierOf(seal.Prefix), lathe.Text{Text: "It is 42."})),
		"another ring": carrierRequest("key", "session", ask, shown),
	} {
		turns := ht
		if name == "another ring" {
			turns = carrierTurns("x")
		}
		j := opened(t, turns, b)
		if j.Lost != 1 || !j.Changed {
			t.Errorf("%s: lost %d, changed %v", name, j.Lost, j.Changed)
		}
		text, err := json.Marshal(j.Messages)
		if err != nil || strings.Contains(string(text), seal.Prefix) || strings.Contains(string(text), "s1") || !strings.Contains(string(text), "It is 42.") {
			t.Errorf("%s: %s, %v", name, text, err)
		}
	}
	if j := opened(t, carrierTurns("n", "k"), carrierRequest("key", "session", ask, shown)); j.Lost != 0 || len(j.Messages) != 4 {
		t.Errorf("after a rotation of the key: lost %d, %d messages", j.Lost, len(j.Messages))
	}
}

// A client that answers other calls than the carrier has gets its own conversation.
func TestCarrierNeedsItsCalls(t *testing.T) {
	t.Parallel()
	ht := carrierTurns("k")
	ask := lathe.User("hello")
	text := sealed(t, ht, carrierRequest("key", "", ask), said(call("s1", "add"), call("c1", "read")), answer("s1", "add", "42"))
	b := carrierRequest("key", "", ask, said(carrierOf(text), call("c2", "read")), answer("c2", "read", "x"))
	j := opened(t, ht, b)
	want := []lathe.Message{ask, said(call("c2", "read")), answer("c2", "read", "x")}
	if diff := cmp.Diff(want, j.Messages); diff != "" || j.Lost != 1 {
		t.Errorf("lost %d (-want +got):\n%s", j.Lost, diff)
	}
}

// The conversation without Carriers is not copied, and nothing is kept where the client is shown everything.
func TestCarrierIsWrittenForHiddenTurnsOnly(t *testing.T) {
	t.Parallel()
	ht := carrierTurns("k")
	a := carrierRequest("key", "", lathe.User("hello"))
	if j := opened(t, ht, a); j.Changed || len(j.Messages) != 1 {
		t.Errorf("got %+v", j)
	}
	c := ht.NewCarriers(t.Context(), a, "run_1")
	if text := c.End([]lathe.Message{said(lathe.Text{Text: "x"}, call("c1", "read"))}, func(lathe.ToolCall) bool { return true }, nil); text != "" {
		t.Error("a turn that the client has seen is in a carrier")
	}
}

// All servers on a store have the same key, also after a restart.
func TestSealKeyIsThatOfTheStore(t *testing.T) {
	t.Parallel()
	shared := store.NewMemory(nil)
	text := ""
	for range 2 {
		k, err := seal.NewKeys(secret.Secret{}, secret.Secret{}, shared)
		if err != nil {
			t.Fatal(err)
		}
		r, err := k.Get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if text == "" {
			text = r.Seal([]byte("x"), "b")
		} else if got, err := r.Open(text, "b"); err != nil || string(got) != "x" {
			t.Errorf("got %q, %v", got, err)
		}
	}
	for name, keys := range map[string][2]secret.Secret{"short": {secret.New("short")}, "previous alone": {1: secret.New(strings.Repeat("k", 32))},
		"short previous": {secret.New(strings.Repeat("k", 32)), secret.New("short")}} {
		if _, err := seal.NewKeys(keys[0], keys[1], nil); err == nil || strings.Contains(err.Error(), "kkk") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
