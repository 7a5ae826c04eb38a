package digest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
)

func hash32(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:32]
}

// The hashes are what CPython 3.11 computes with
// sha256(json.dumps(args, sort_keys=True)[:200].encode()).hexdigest()[:32].
func TestArgsPreviewCompat(t *testing.T) {
	t.Parallel()
	tests := []struct{ args, want string }{
		{`{}`, "44136fa355b3678a1146ad16f7e8649e"},
		{` { } `, "44136fa355b3678a1146ad16f7e8649e"},
		{`{"q":"weather"}`, "620224f323ef1cd771df11137276b18a"},
		{`{"q":"\u0077eather"}`, "620224f323ef1cd771df11137276b18a"},
		{`{"b":1,"a":2}`, "21501dbaf73f5223934d22283f01caff"},
		{`{"a":2,"b":1}`, "21501dbaf73f5223934d22283f01caff"},
		{`{"a":3,"b":1,"a":2}`, "21501dbaf73f5223934d22283f01caff"},
		{`{"city":"Köln"}`, "bad576e13943c87fad6819ba66dd8a0a"},
		{`{"city":"K\u00f6ln"}`, "bad576e13943c87fad6819ba66dd8a0a"},
		{`{"x":"` + strings.Repeat("y", 300) + `"}`, "85bf327f05b5240fd115325569607fe6"},
		{`{"x":"` + strings.Repeat("y", 30_000) + `"}`, "85bf327f05b5240fd115325569607fe6"},
		{`{"n":1.0,"m":1e16,"t":true,"z":null,"l":[1,"a"]}`, "7fc95a1b6cff1dfa744c4c65da59f4b4"},
		{"{\"lone\":\"<&>\u2028\"}", "bb5e3a70b446582f665ff10b7a3680a3"},
	}
	for _, tt := range tests {
		if got := ArgsPreview([]byte(tt.args), Compat, nil); got != tt.want {
			t.Errorf("ArgsPreview(%.60s) = %s, want %s", tt.args, got, tt.want)
		}
	}
}

func TestArgsPreviewTakesTwoHundredCharacters(t *testing.T) {
	t.Parallel()
	// The canonical text is {"x": "yyy…"}: seven characters, the ys, two more.
	arg := func(n int, tail string) []byte { return []byte(`{"x":"` + strings.Repeat("y", n) + tail + `"}`) }
	for n := 185; n < 200; n++ {
		same := ArgsPreview(arg(n, "a"), Compat, nil) == ArgsPreview(arg(n, "b"), Compat, nil)
		if want := 7+n >= PreviewLength; same != want {
			t.Errorf("two texts that differ in character %d have equal hashes: %v, want %v", 7+n+1, same, want)
		}
		if got, want := ArgsPreview(arg(n, ""), Compat, nil), hash32((`{"x": "` + strings.Repeat("y", n) + `"}`)[:min(n+9, 200)]); got != want {
			t.Errorf("%d ys: %s, want %s", n, got, want)
		}
		if ArgsPreview(arg(n, "a"), Full, nil) == ArgsPreview(arg(n, "b"), Full, nil) {
			t.Errorf("two texts that differ in character %d have equal full hashes", 7+n+1)
		}
	}
	// Escapes count as the characters they are written with: 7 + 31*6 = 193, and one escape is cut.
	got := ArgsPreview([]byte(`{"x":"`+strings.Repeat("é", 40)+`"}`), Compat, nil)
	if want := hash32((`{"x": "` + strings.Repeat(`\u00e9`, 40))[:200]); got != want {
		t.Errorf("escapes: %s, want %s", got, want)
	}
}

func TestArgsPreviewFullAndKeyed(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 300, 5000} {
		args := []byte(`{"b":"` + strings.Repeat("é", n) + `","a":1}`)
		text := `{"a": 1, "b": "` + strings.Repeat(`\u00e9`, n) + `"}`
		if got, want := ArgsPreview(args, Full, nil), hash32(text); got != want {
			t.Errorf("Full of %d: %s, want %s", n, got, want)
		}
		mac := hmac.New(sha256.New, []byte("key"))
		mac.Write([]byte(text))
		if got, want := ArgsPreview(args, Keyed, []byte("key")), hex.EncodeToString(mac.Sum(nil))[:32]; got != want {
			t.Errorf("Keyed of %d: %s, want %s", n, got, want)
		}
		if ArgsPreview(args, Keyed, []byte("key")) == ArgsPreview(args, Keyed, []byte("yek")) {
			t.Error("Keyed does not depend on the key")
		}
		for _, key := range [][]byte{nil, {}} {
			if got := ArgsPreview(args, Keyed, key); got != "" {
				t.Errorf("Keyed without a key: %q, want nothing", got)
			}
		}
	}
}

func TestArgsPreviewOfOtherText(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"", "{", `{"a":1,}`, "get the weather", "{\"a\":\"\xff\"}", strings.Repeat("[", 300), `{"a":1}{}`} {
		if got, want := ArgsPreview([]byte(args), Compat, nil), hash32(args); got != want {
			t.Errorf("ArgsPreview(%.20q) = %s, want the hash of the text, %s", args, got, want)
		}
		if got, want := ArgsPreview([]byte(args), Full, nil), hash32(args); got != want {
			t.Errorf("ArgsPreview(%.20q, Full) = %s, want the hash of the text, %s", args, got, want)
		}
	}
	for args, text := range map[string]string{`"x"`: `"x"`, `null`: `null`, ` 1.0 `: `1.0`, `"\ud800"`: `"\ud800"`} {
		if got, want := ArgsPreview([]byte(args), Compat, nil), hash32(text); got != want {
			t.Errorf("ArgsPreview(%s) = %s, want %s", args, got, want)
		}
	}
}

func TestArgsDigest(t *testing.T) {
	t.Parallel()
	schema := []byte(`{"type":"object","properties":{"id":{}}}`)
	base := ArgsDigest("run_1", "call_1", "pay", schema, []byte(`{"id":9007199254740993,"to":"a"}`))
	same := map[string]string{
		"order and white space": ArgsDigest("run_1", "call_1", "pay", schema, []byte(` { "to":"\u0061", "id":9007199254740993 } `)),
		"schema written anew":   ArgsDigest("run_1", "call_1", "pay", []byte(`{"properties":{"id":{}}, "type":"object"}`), []byte(`{"id":9007199254740993,"to":"a"}`)),
	}
	for name, got := range same {
		if got != base {
			t.Errorf("%s: %s, want %s", name, got, base)
		}
	}
	seen := map[string]string{base: "base"}
	for name, got := range map[string]string{
		"run":            ArgsDigest("run_2", "call_1", "pay", schema, []byte(`{"id":9007199254740993,"to":"a"}`)),
		"call":           ArgsDigest("run_1", "call_2", "pay", schema, []byte(`{"id":9007199254740993,"to":"a"}`)),
		"tool":           ArgsDigest("run_1", "call_1", "paz", schema, []byte(`{"id":9007199254740993,"to":"a"}`)),
		"schema":         ArgsDigest("run_1", "call_1", "pay", []byte(`{}`), []byte(`{"id":9007199254740993,"to":"a"}`)),
		"no schema":      ArgsDigest("run_1", "call_1", "pay", nil, []byte(`{"id":9007199254740993,"to":"a"}`)),
		"a near integer": ArgsDigest("run_1", "call_1", "pay", schema, []byte(`{"id":9007199254740992,"to":"a"}`)),
		"a letter":       ArgsDigest("run_1", "call_1", "pay", schema, []byte(`{"id":9007199254740993,"to":"A"}`)),
		"moved border":   ArgsDigest("run_1c", "all_1", "pay", schema, []byte(`{"id":9007199254740993,"to":"a"}`)),
		"broken":         ArgsDigest("run_1", "call_1", "pay", schema, []byte(`{"id":9007199254740993,"to":"a"`)),
		"twice":          ArgsDigest("run_1", "call_1", "pay", schema, []byte(`{"id":1,"id":9007199254740993,"to":"a"}`)),
		"empty":          ArgsDigest("run_1", "call_1", "pay", schema, nil),
		"no ids":         ArgsDigest("", "", "", nil, nil),
		"bad UTF-8":      ArgsDigest("run_1", "call_\xff", "pay", schema, nil),
		"U+FFFD":         ArgsDigest("run_1", "call_\ufffd", "pay", schema, nil),
	} {
		if other, ok := seen[got]; ok {
			t.Errorf("%s and %s have the same digest", name, other)
		}
		seen[got] = name
	}
}

// A stored approval must be found again by a later version.
func TestArgsDigestStaysTheSame(t *testing.T) {
	t.Parallel()
	got := ArgsDigest("run_1", "call_1", "pay", []byte(`{"type":"object"}`), []byte(`{"to":"a","amount":1.50}`))
	if want := "7240de3ca8d1ebf1adf2e6f68e485a5d4aa68370e248baa87c89a8016c805086"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
