package mcp

import (
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// FuzzInspect: what is let through is strict JSON that the protocol's decoder reads the same way; what
// is refused is answered with strict JSON.
func FuzzInspect(f *testing.F) {
	for _, s := range []string{`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":"\u0061","method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
		`{"jsonrpc":"2.0","id":1,"id":2}`, `[]`, `{"a":1,"a":2,"id":"\ud800"}`, ` {"jsonrpc" : "2.0", "result" : 1, "id" : -3 }`, `{"jsonrpc":"2.0","id":-0,"method":"ping"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, no := inspect(b)
		if no != nil {
			if err := rawjson.Check(no.append(nil), rawjson.Limits{}); err != nil {
				t.Fatalf("%v: %s", err, no.append(nil))
			}
			return
		}
		if err := rawjson.Check(b, messageLimits); err != nil {
			t.Fatalf("let through: %v", err)
		}
		msg, err := jsonrpc.DecodeMessage(b)
		if err != nil {
			return
		}
		switch msg := msg.(type) {
		case *jsonrpc.Request:
			if msg.Method != m.method || msg.IsCall() != (m.id != "") {
				t.Fatalf("read %+v, and the decoder reads %+v", m, msg)
			}
			if msg.IsCall() {
				sameID(t, m.id, msg.ID)
			}
		case *jsonrpc.Response:
			if m.method != "" {
				t.Fatalf("read %+v, and the decoder a response", m)
			}
			sameID(t, m.id, msg.ID)
		}
	})
}

func sameID(t *testing.T, written string, id jsonrpc.ID) {
	t.Helper()
	want := "n" + written
	if strings.HasPrefix(written, `"`) {
		s, err := rawjson.AppendUnquote(nil, []byte(written))
		if err != nil {
			t.Fatal(err)
		}
		want = "s" + string(s)
	}
	if got := keyOf(id); got != want {
		t.Fatalf("the id %s is read as %s", written, got)
	}
}
