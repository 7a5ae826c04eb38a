package agent

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestComplete(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		``: ``, ` `: ``, `12`: ``, `tru`: ``, `12 `: `12`, `"ab`: `"ab"`, `{`: `{}`, `{"a`: `{}`, `{"a"`: `{}`, `{"a":`: `{}`, `{"a":1`: `{}`,
		`{"a":1,`: `{"a":1}`, `{"a":"x`: `{"a":"x"}`, `{"a":"x\`: `{"a":"x"}`, `{"a":"x\u00`: `{"a":"x"}`, `{"a":"\ud83d\ude`: `{"a":""}`,
		`{"a":["b",{"c":[`: `{"a":["b",{"c":[]}]}`, `{"a":["b",{"c":nul`: `{"a":["b",{}]}`, `[1,2`: `[1]`, "[\"\xc3": `[""]`, `{]`: ``,
	} {
		if got := string(complete([]byte(in))); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

// Each beginning of a JSON text is completed to JSON, and the whole text to itself.
func FuzzComplete(f *testing.F) {
	f.Add([]byte(`{"a":[1,2.5e3,true,null,"x\"\\\u00e9\ud83d\ude00"],"b":{"c":{}},"":[]}`))
	f.Add([]byte(`[{"ä":"ö"}, [[]] , -1 ]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1<<10 || !json.Valid(text) {
			_ = complete(bytes.Clone(text)) // must not panic
			return
		}
		for n := range text {
			if got := complete(bytes.Clone(text[:n])); got != nil && !json.Valid(got) {
				t.Fatalf("%q: got %q", text[:n], got)
			}
		}
		if got := complete(append(bytes.Clone(text), ' ')); !json.Valid(got) || len(got) > len(text) {
			t.Fatalf("%q: got %q", text, got)
		}
	})
}
