package mcp_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/gateway/mcp"
)

// hello0326 begins a session of the version that has batches.
var hello0326 = strings.Replace(hello, "2025-11-25", "2025-03-26", 1)

func batch(messages ...string) string { return "[" + strings.Join(messages, ",") + "]" }

// old opens a session of 2025-03-26 over HTTP and returns the header that names it.
func old(t *testing.T, c *http.Client, url string) []string {
	t.Helper()
	_, id, _ := post(t, c, url, hello0326)
	in := []string{"Mcp-Session-Id", id}
	if status, _, _ := post(t, c, url, ready, in...); status != http.StatusAccepted {
		t.Fatalf("initialized: %d", status)
	}
	return in
}

// answers are the responses of a stream of events or of an array, by id.
func answers(t *testing.T, body string) map[string]string {
	t.Helper()
	var all []json.RawMessage
	if strings.HasPrefix(body, "[") {
		if err := json.Unmarshal([]byte(body), &all); err != nil {
			t.Fatal(err)
		}
	} else {
		for line := range strings.Lines(body) {
			if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: {"); ok {
				all = append(all, json.RawMessage("{"+data))
			}
		}
	}
	out := map[string]string{}
	for _, one := range all {
		var m struct {
			ID json.RawMessage `json:"id"`
		}
		if err := json.Unmarshal(one, &m); err != nil {
			t.Fatalf("%v: %s", err, one)
		}
		if _, twice := out[string(m.ID)]; twice {
			t.Errorf("%s is answered twice", m.ID)
		}
		out[string(m.ID)] = string(one)
	}
	return out
}

const (
	ping     = `{"jsonrpc":"2.0","id":"p","method":"ping"}`
	progress = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"x","progress":1}}`
	nonsense = `{"jsonrpc":"2.0","method":"notifications/nonsense"}`
	late     = `{"jsonrpc":"2.0","id":77,"result":{}}`
)

// Batches are served, their requests side by side, whatever stands between them.
func TestBatchesOverHTTP(t *testing.T) {
	t.Parallel()
	first := make(chan struct{}) // closed by the second call, for which the first waits
	r := newRig(t, nil, nil, reader("echo", echo), reader("wait", func(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
		select {
		case <-first:
		case <-ctx.Done():
		}
		return &lathe.Output{Data: json.RawMessage(`{"waited":true}`)}, ctx.Err()
	}), reader("go", func(context.Context, json.RawMessage) (*lathe.Output, error) {
		close(first)
		return &lathe.Output{Data: json.RawMessage(`{"went":true}`)}, nil
	}))
	url, c := r.web(), client(t)
	in := old(t, c, url)
	status, _, body := postWhole(t, c, url, batch(call(1, "wait", `{}`), progress, ping, nonsense, call(2, "go", `{}`), late, call(3, "echo", `{"a":1}`)), in...)
	got := answers(t, body)
	if status != 200 || len(got) != 4 || !strings.Contains(got["1"], "waited") || !strings.Contains(got["2"], "went") || !strings.Contains(got["3"], `"a":1`) || got[`"p"`] == "" {
		t.Errorf("%d %v", status, got)
	}
	for name, msg := range map[string]string{"notifications": batch(progress, nonsense, late), "what nobody listens for": batch(nonsense)} {
		if status, _, body := postWhole(t, c, url, msg, in...); status != http.StatusAccepted || body != "" {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	if status, _, body := postWhole(t, c, url, batch(call(9, "echo", `{}`)), append([]string{"Mcp-Protocol-Version", "2025-03-26"}, in...)...); status != 200 || answers(t, body)["9"] == "" {
		t.Errorf("with the header: %d %s", status, body)
	}
}

// Each request of a batch counts, and one that may not be made has none of them made.
func TestBatchesAreCharged(t *testing.T) {
	t.Parallel()
	ran := 0
	r := newRig(t, nil, nil, reader("count", func(context.Context, json.RawMessage) (*lathe.Output, error) {
		ran++
		return &lathe.Output{Data: json.RawMessage(`{}`)}, nil
	}))
	url, c := r.web(), client(t)
	in := old(t, c, url)
	var asked []int
	r.server.Admit(&mcp.HTTPOptions{Charge: func(_ context.Context, n int) (time.Duration, bool) {
		asked = append(asked, n)
		return 90 * time.Second, n < 3
	}})
	for n, want := range map[int]int{1: 200, 4: 429} {
		if status, _, body := postWhole(t, c, url, many(n), in...); status != want || want == 429 && !strings.Contains(body, `"error"`) {
			t.Errorf("a batch of %d: %d %s", n, status, body)
		}
	}
	if len(asked) != 1 || asked[0] != 3 || ran != 1 {
		t.Errorf("charged %v, ran %d", asked, ran)
	}
}

// many is a batch of n calls.
func many(n int) string {
	var all []string
	for i := range n {
		all = append(all, call(i+1, "count", `{}`))
	}
	return batch(all...)
}

func TestBatchesAreRefusedWhole(t *testing.T) {
	t.Parallel()
	ran := make(chan struct{}, 1000)
	count := func(context.Context, json.RawMessage) (*lathe.Output, error) {
		ran <- struct{}{}
		return &lathe.Output{Data: json.RawMessage(`{}`)}, nil
	}
	one := call(1, "count", `{}`)
	for _, tc := range []struct {
		name, msg string
		want      map[string]string // by id, a part of the error
	}{
		{"empty", `[]`, map[string]string{"null": "empty"}},
		{"too many", many(65), map[string]string{"null": "too many"}},
		{"no JSON", `[` + one + `,`, map[string]string{"null": "-32700"}},
		{"T11 duplicate", batch(one, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"count","name":"x"}}`), map[string]string{"null": "duplicate_key"}},
		{"no messages", `[1,` + one + `]`, map[string]string{"null": "-32600", "1": "nothing of the batch was done"}},
		{"a batch in a batch", batch(one, batch(ping)), map[string]string{"null": "-32600", "1": "nothing of the batch"}},
		{"unknown method", batch(one, `{"jsonrpc":"2.0","id":2,"method":"nope"}`, late), map[string]string{"2": "-32601", "1": "nothing of the batch"}},
		{"one id", batch(one, ping, `{"jsonrpc":"2.0","id":"\u0070","method":"ping"}`), map[string]string{`"p"`: "nothing of the batch", `"\u0070"`: "two requests", "1": "nothing of the batch"}},
		{"initialize", batch(hello0326, one), map[string]string{"0": "initialize stands alone", "1": "nothing of the batch"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t, nil, &mcp.Options{MaxMessageBytes: 100_000}, reader("count", count))
			check := func(how, body string) {
				t.Helper()
				if !strings.HasPrefix(body, "[") {
					body = "[" + body + "]"
				}
				got := answers(t, body)
				for id, part := range tc.want {
					if !strings.Contains(got[id], part) {
						t.Errorf("%s: %s is answered %s", how, id, got[id])
					}
				}
			}
			url, c := r.web(), client(t)
			status, _, body := postWhole(t, c, url, tc.msg, old(t, c, url)...)
			if status != http.StatusBadRequest {
				t.Errorf("status %d", status)
			}
			check("HTTP", body)
			l := r.talk(hello0326)
			l.await(`"id":0`)
			l.send(tc.msg)
			l.send(`{"jsonrpc":"2.0","id":"last","method":"ping"}`)
			seen := l.await(`"last"`)
			check("lines", seen[0])
			if len(seen) != 2 {
				t.Errorf("lines: %q", seen)
			}
			if len(ran) > 0 {
				t.Error("a call has run")
			}
		})
	}
}

func TestBatchesAreOfOneVersion(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, nil, reader("echo", echo))
	url, c := r.web(), client(t)
	for _, version := range []string{"2024-11-05", "2025-06-18", "2025-11-25"} {
		_, id, _ := post(t, c, url, strings.Replace(hello, "2025-11-25", version, 1))
		if status, _, body := postWhole(t, c, url, batch(ping), "Mcp-Session-Id", id); status != 400 || !strings.Contains(body, "batches belong to protocol version 2025-03-26") {
			t.Errorf("%s: %d %s", version, status, body)
		}
	}
	in := old(t, c, url)
	for name, headers := range map[string][]string{"another version": append([]string{"Mcp-Protocol-Version", "2025-06-18"}, in...), "no session": nil,
		"a version without sessions": {"Mcp-Protocol-Version", "2026-07-28"}} {
		if status, _, body := postWhole(t, c, url, batch(ping), headers...); status != 400 || !strings.Contains(body, "-32600") {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	if status, _, _ := postWhole(t, c, url, batch(ping), "Mcp-Session-Id", "nope"); status != http.StatusNotFound {
		t.Errorf("a session that is not there: %d", status)
	}
}

// Over standard streams the answers to a batch are one line, those to others their own.
func TestBatchesOverLines(t *testing.T) {
	t.Parallel()
	held := make(chan struct{})
	r := newRig(t, nil, nil, reader("echo", echo), reader("held", func(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
		select {
		case <-held:
		case <-ctx.Done():
		}
		return &lathe.Output{Data: json.RawMessage(`{"held":true}`)}, ctx.Err()
	}))
	l := r.talk(hello0326)
	l.await(`"id":0`)
	l.send(ready)
	l.send(batch(call(1, "held", `{}`), progress, nonsense, call(2, "echo", `{}`)))
	l.send(batch(progress, nonsense))
	l.send(batch(call(2, "echo", `{}`), call(1, "echo", `{}`))) // at least the first of those is under way
	if seen := l.await("under way"); len(seen) != 1 {
		t.Errorf("got %q", seen)
	}
	l.send(call(3, "echo", `{}`))
	if seen := l.await(`"id":3`); len(seen) != 1 || strings.HasPrefix(seen[0], "[") {
		t.Errorf("got %q", seen)
	}
	close(held)
	seen := l.await(`"held":true`)
	if got := answers(t, seen[0]); len(seen) != 1 || len(got) != 2 || !strings.Contains(got["1"], "held") || got["2"] == "" {
		t.Errorf("got %q", seen)
	}
	// Requests that are open when the input ends are answered.
	l.send(batch(call(4, "echo", `{}`), call(5, "echo", `{}`)))
	if err := l.out.Close(); err != nil {
		t.Fatal(err)
	}
	if got := answers(t, l.await("result")[0]); len(got) != 2 || got["4"] == "" || got["5"] == "" {
		t.Errorf("got %v", got)
	}
}
