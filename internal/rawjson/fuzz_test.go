package rawjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

var fuzzTexts = []string{
	`{"a":[1,-0.5e+3,true,null,"x\u00e9\ud83d\ude80\n"],"b":{}}`, `{"a":1,"\u0061":2}`, `"\ud800"`, "\"\xff\"", `[1,]`,
	smallObject, ` [ 9007199254740993 , 1e400 ] `, "\"\x7f\u2028\"", `{"\ufb33":1,"\ud83d\ude00":2}`, `{"":{"":[{}]}}`, "[[[[", "01", "tru",
}

func FuzzCheck(f *testing.F) {
	for _, s := range fuzzTexts {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if got, want := scansWhole(text), json.Valid(text); got != want {
			t.Errorf("Scan accepts: %v, encoding/json: %v", got, want)
		}
		err := Check(text, Limits{})
		var se *SyntaxError
		if err != nil && !errors.As(err, &se) {
			t.Fatalf("%T: %v", err, err)
		}
		if se != nil && (se.Kind == KindDeep || se.Kind == KindKeys) {
			return
		}
		if se != nil && (se.Offset < 0 || se.Offset > len(text)) {
			t.Errorf("offset %d of %d", se.Offset, len(text))
		}
		// jsontext refuses the same texts: bad UTF-8, lone surrogates, equal names.
		if want := jsontext.Value(text).IsValid(); (err == nil) != want {
			t.Errorf("Check: %v, jsontext accepts: %v", err, want)
		}
	})
}

func FuzzCanonical(f *testing.F) {
	for _, s := range fuzzTexts {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if p, err := AppendPython(nil, text); err == nil {
			if !bytes.Contains(p, []byte("Infinity")) && !json.Valid(p) {
				t.Errorf("python form %q is not JSON", p)
			}
			for _, c := range p {
				if c < ' ' || c > '~' {
					t.Fatalf("python form %q has byte %#x", p, c)
				}
			}
		}
		once, err := AppendCanonical(nil, text)
		if err != nil {
			if Check(text, Limits{}) == nil {
				t.Errorf("AppendCanonical refuses what Check accepts: %v", err)
			}
			return
		}
		if twice, err := AppendCanonical(nil, once); err != nil || !bytes.Equal(once, twice) {
			t.Errorf("canonical form %q, of that %q, %v", once, twice, err)
		}
		if compact, err := AppendCanonical(nil, AppendCompact(nil, text)); err != nil || !bytes.Equal(once, compact) {
			t.Errorf("canonical form %q, of the compact text %q, %v", once, compact, err)
		}
		// jsontext's form is the same where no number keeps digits that a double would lose.
		theirs := jsontext.Value(bytes.Clone(text))
		if err := theirs.Canonicalize(); err == nil && !bytes.ContainsAny(text, "0123456789") && !bytes.Equal(once, theirs) {
			t.Errorf("canonical form %q, jsontext has %q", once, theirs)
		}
	})
}

func FuzzQuote(f *testing.F) {
	for _, s := range append(fuzzTexts, "é\xff\x00\u2028") {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		quoted := AppendQuote(nil, text)
		if err := Check(quoted, Limits{}); err != nil {
			t.Fatalf("AppendQuote(%q) = %q: %v", text, quoted, err)
		}
		want := text
		if !utf8.ValidString(text) {
			want = string([]rune(text))
		}
		got, err := AppendUnquote(nil, quoted)
		if err != nil || string(got) != want {
			t.Errorf("AppendUnquote(AppendQuote(%q)) = %q, %v", text, got, err)
		}
		if lossy := AppendUnquoteLossy(nil, quoted); string(lossy) != want {
			t.Errorf("AppendUnquoteLossy(AppendQuote(%q)) = %q", text, lossy)
		}
		if !EqualKey(quoted, want) {
			t.Errorf("EqualKey(%q, %q) is false", quoted, want)
		}
		// Any text as a literal: what is accepted is what the standard reads, and lossy is valid.
		if strict, err := AppendUnquote(nil, []byte(text)); err == nil {
			var std string
			if err := json.Unmarshal([]byte(text), &std); err != nil || std != string(strict) {
				t.Errorf("AppendUnquote(%q) = %q, encoding/json has %q, %v", text, strict, std, err)
			}
		}
		if lossy := AppendUnquoteLossy(nil, []byte(text)); !utf8.Valid(lossy) {
			t.Errorf("AppendUnquoteLossy(%q) = %q, which is not UTF-8", text, lossy)
		}
	})
}

func FuzzWalk(f *testing.F) {
	for _, s := range fuzzTexts {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		compact := AppendCompact(nil, text)
		valid := Check(text, Limits{}) == nil
		var members, elements []string
		for k, v := range Members(text) {
			members = append(members, string(AppendCompact(AppendCompact(nil, k), []byte(":")))+string(AppendCompact(nil, v)))
		}
		for v := range Elements(text) {
			elements = append(elements, string(AppendCompact(nil, v)))
		}
		if !valid {
			return
		}
		var want bytes.Buffer
		if err := json.Compact(&want, text); err != nil || want.String() != string(compact) {
			t.Errorf("compact %q, encoding/json has %q, %v", compact, want.String(), err)
		}
		var again string
		switch compact[0] {
		case '{':
			again = "{" + strings.Join(members, ",") + "}"
		case '[':
			again = "[" + strings.Join(elements, ",") + "]"
		default:
			return
		}
		if again != string(compact) {
			t.Errorf("the parts of %q make %q", compact, again)
		}
	})
}
