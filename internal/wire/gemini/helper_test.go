package gemini

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/destination"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/wire"
)

func mustParse(t testing.TB, body string) *wire.ClientRequest {
	t.Helper()
	req, err := Codec{}.ParseRequest([]byte(body))
	if err != nil {
		t.Fatalf("%.300s\n%v: %s", body, err, err.(*wire.APIError).Message)
	}
	return req
}

func encode(t testing.TB, req *lathe.Request, opts *wire.EncodeOptions) (string, []string) {
	t.Helper()
	if opts == nil {
		opts = &wire.EncodeOptions{}
	}
	opts.Takes = destination.For(lathe.WireGemini, "", "", req.Model)
	body, dropped := Codec{}.AppendRequest(nil, req, opts)
	if !json.Valid(body) {
		t.Fatalf("not JSON: %s", body)
	}
	return string(body), dropped
}

func dump(t testing.TB, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// same compares values by their JSON, which has the types of parts.
func same(t testing.TB, what string, got, want any) {
	t.Helper()
	if g, w := dump(t, typed(got)), dump(t, typed(want)); g != w {
		t.Errorf("%s:\n%s\nwant\n%s", what, g, w)
	}
}

// typed returns messages with the types of their parts.
func typed(v any) any {
	msgs, ok := v.([]lathe.Message)
	if !ok {
		return v
	}
	type part struct {
		Type string
		Part lathe.Part
	}
	var out []any
	for _, m := range msgs {
		var parts []part
		for _, p := range m.Parts {
			name := strings.TrimPrefix(strings.TrimPrefix(typeName(p), "lathe."), "*")
			parts = append(parts, part{name, p})
		}
		m.Parts = nil
		out = append(out, map[string]any{"m": m, "parts": parts})
	}
	return out
}

func typeName(p lathe.Part) string {
	switch p.(type) {
	case lathe.Text:
		return "Text"
	case lathe.Reasoning:
		return "Reasoning"
	case lathe.Refusal:
		return "Refusal"
	case lathe.Blob:
		return "Blob"
	case lathe.ToolCall:
		return "ToolCall"
	case lathe.ToolResult:
		return "ToolResult"
	case lathe.Opaque:
		return "Opaque"
	}
	return "?"
}

// events returns the data of the events of a stream.
func events(t testing.TB, stream string) []string {
	t.Helper()
	var out []string
	for _, block := range strings.Split(stream, "\n\n") {
		block = strings.TrimSpace(block)
		if block == "" {
			continue
		}
		data, ok := strings.CutPrefix(block, "data: ")
		if !ok || strings.Contains(data, "\n") {
			t.Fatalf("not an event of one line of data: %q", block)
		}
		if !json.Valid([]byte(data)) {
			t.Fatalf("not JSON: %s", data)
		}
		out = append(out, data)
	}
	return out
}

// assemble reads events.
func assemble(t testing.TB, data []string) ([]lathe.Delta, *lathe.Finish, error) {
	t.Helper()
	a := Codec{}.NewAssembler(nil)
	var deltas []lathe.Delta
	var err error
	for _, d := range data {
		if deltas, err = a.Append(deltas, "", []byte(d)); err != nil {
			break
		}
	}
	f, err := a.Finish(true)
	return deltas, f, err
}

func mustAssemble(t testing.TB, data []string) ([]lathe.Delta, *lathe.Finish) {
	t.Helper()
	deltas, f, err := assemble(t, data)
	if err != nil {
		t.Fatalf("%v\n%s", err, strings.Join(data, "\n"))
	}
	return deltas, f
}

func readShared(t testing.TB, elem ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(testdata.Dir(t, "wires", elem...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// agentRequest is a captured request.
func agentRequest(t testing.TB, name string) string {
	t.Helper()
	var record struct{ Body json.RawMessage }
	if err := json.Unmarshal(readShared(t, "agents", name), &record); err != nil {
		t.Fatal(err)
	}
	return string(record.Body)
}

func pointer[T any](v T) *T { return &v }
