package rawjson

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestAppendQuote(t *testing.T) {
	t.Parallel()
	tests := []struct{ text, want string }{
		{"", `""`},
		{"plain", `"plain"`},
		{`a"b\c/d`, `"a\"b\\c/d"`},
		{"\b\f\n\r\t", `"\b\f\n\r\t"`},
		{"\x00\x01\x0b\x1e\x1f\x7f", "\"\\u0000\\u0001\\u000b\\u001e\\u001f\x7f\""},
		{"<a href='x'>&amp;</a>", `"<a href='x'>&amp;</a>"`},
		{"x\u2028y\u2029z", "\"x\u2028y\u2029z\""},
		{"Привет 你好 🚀 and more", `"Привет 你好 🚀 and more"`},
		{"\ufffd\ufeff\uffff", "\"\ufffd\ufeff\uffff\""},
		{"a\xffb", "\"a\ufffdb\""},
		{"\xed\xa0\x80", "\"\ufffd\ufffd\ufffd\""},
		{"é\xe2\x82", "\"é\ufffd\ufffd\""},
		{`\u2028`, `"\\u2028"`},
		{"exactly 8\"", `"exactly 8\""`},
		{strings.Repeat("é", 9) + "\n", `"` + strings.Repeat("é", 9) + `\n"`},
	}
	for _, tt := range tests {
		got := AppendQuote([]byte("x"), tt.text)
		if string(got) != "x"+tt.want {
			t.Errorf("AppendQuote(%q) = %s, want x%s", tt.text, got, tt.want)
		}
		if !json.Valid(got[1:]) {
			t.Errorf("AppendQuote(%q) is not JSON", tt.text)
		}
	}
}

func TestAppendUnquote(t *testing.T) {
	t.Parallel()
	tests := []struct{ quoted, want, lossy, kind string }{
		{`""`, "", "", ""},
		{`"a\"\\\/\b\f\n\r\tz"`, "a\"\\/\b\f\n\r\tz", "", ""},
		{`"\u0041\u00e9\u20AC"`, "Aé€", "", ""},
		{`"\ud83d\ude80!"`, "🚀!", "", ""},
		{`"\uD83D\uDE80"`, "🚀", "", ""},
		{"\"é🚀\u2028\x7f\"", "é🚀\u2028\x7f", "", ""},
		{`"\u0000"`, "\x00", "", ""},
		{`"\ufffd"`, "\ufffd", "", ""},
		{`"\ud800"`, "", "\ufffd", KindSurrogate},
		{`"a\ud800b"`, "", "a\ufffdb", KindSurrogate},
		{`"\ud800\n"`, "", "\ufffd\n", KindSurrogate},
		{`"\ud800\u0041"`, "", "\ufffdA", KindSurrogate},
		{`"\ud800\ud83d\ude80"`, "", "\ufffd🚀", KindSurrogate},
		{`"\udc00\ud800"`, "", "\ufffd\ufffd", KindSurrogate},
		{`"\ud800\uzz"`, "", "\ufffd\ufffduzz", KindSurrogate},
		{"\"a\xff\xfeb\"", "", "a\ufffd\ufffdb", KindUTF8},
		{"\"\xed\xa0\x80\"", "", "\ufffd\ufffd\ufffd", KindUTF8},
		{`"\q"`, "", "\ufffdq", KindEscape},
		{`"\u12"`, "", "\ufffdu12", KindEscape},
		{"\"a\nb\"", "", "a\nb", KindControl},
		{`"abc`, "", "abc", KindEnd},
		{`"abc\`, "", "abc\ufffd", KindEnd},
		{`"`, "", "", KindEnd},
		{`abc"`, "", "abc", KindCharacter},
		{`"a"b"`, "", `a"b`, KindTrailing},
		{`"a" `, "", `a" `, KindTrailing},
		{``, "", "", KindEmpty},
	}
	for _, tt := range tests {
		got, err := AppendUnquote([]byte("x"), []byte(tt.quoted))
		if tt.kind == "" {
			if err != nil || string(got) != "x"+tt.want {
				t.Errorf("AppendUnquote(%q) = %q, %v; want x%q", tt.quoted, got, err, tt.want)
			}
			tt.lossy = tt.want
		} else {
			var se *SyntaxError
			if !errors.As(err, &se) || se.Kind != tt.kind {
				t.Errorf("AppendUnquote(%q): %v, want %s", tt.quoted, err, tt.kind)
			}
			if string(got) != "x" {
				t.Errorf("AppendUnquote(%q) changes dst to %q with an error", tt.quoted, got)
			}
		}
		if got := AppendUnquoteLossy([]byte("x"), []byte(tt.quoted)); string(got) != "x"+tt.lossy {
			t.Errorf("AppendUnquoteLossy(%q) = %q, want x%q", tt.quoted, got, tt.lossy)
		}
	}
}

func TestTextIsEmptyForOtherValues(t *testing.T) {
	for in, want := range map[string]string{`"a\u00e9\ud800"`: "aé\uFFFD", `""`: "", "": "", "1": "", `{"a":"b"}`: "", "null": ""} {
		if got := Text([]byte(in)); got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}

func TestCompactText(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"", "{}", ` { "a" : [ 1 , "b c" ] } `, `{"a":` + strings.Repeat(" ", 100) + `1}`, "{\"a\":\"" + strings.Repeat("x y", 50) + "\"}"} {
		given := []byte(raw)
		got, want := CompactText(given), string(AppendCompact(nil, given))
		clear(given)
		if got != want {
			t.Errorf("CompactText(%q) = %q, want %q", raw, got, want)
		}
	}
}
