package mcptool

import (
	"testing"

	"github.com/lathe-run/lathe"
)

// BenchmarkCall is one call through the runner to a stdio server and back.
func BenchmarkCall(b *testing.B) {
	r := newRig(b, nil, testConf(b, ""))
	for b.Loop() {
		if res := r.call("box__echo", map[string]string{"text": "x"}); res.Code != "" {
			b.Fatal(res.Code)
		}
	}
}

func TestSchemaWithoutTypeIsAnObject(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		``:                             `{"type":"object"}`,
		`{}`:                           `{"type":"object"}`,
		`{"properties":{"a":{}}}`:      `{"type":"object","properties":{"a":{}}}`,
		`{"type":"object","title":""}`: `{"type":"object","title":""}`,
	} {
		d := &definition{name: "x", schema: []byte(in), digest: sum(nil)}
		if got := newRemote(&supervisor{conf: Server{Name: "s"}}, d).spec; string(got.Schema) != want || got.Effect != lathe.EffectUndeclared {
			t.Errorf("%s: got %s", in, got.Schema)
		}
	}
}
