package rawjson

import (
	"strings"
	"testing"
)

func TestRepairObject(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want, repaired string }{
		{"{\"a\":\"one\ntwo\tx\r\n\"}", `{"a":"one\ntwo\tx\r\n"}`, "control_character"},
		{`{"a":[1,2,],"b":{"c":3 , },}`, `{"a":[1,2],"b":{"c":3  }}`, "trailing_comma"},
		{"{\"a\":\"x\ny\",}", `{"a":"x\ny"}`, "control_character,trailing_comma"},
		{"\ufeff{\"a\":1}", `{"a":1}`, "bom"},
		{"\ufeff {\"a\":1,}", `{"a":1}`, "bom,trailing_comma"},
		{"```json\n{\"a\":1,}\n```", `{"a":1}`, "code_fence,trailing_comma"},
		{`"{\"a\":1}"`, `{"a":1}`, "json_string"},
		{"{\"a,}\":\"\\\",}\n\"}", `{"a,}":"\",}\n"}`, "control_character"},
		{"```\n{\"a\":}\n```", `{"a":}`, "code_fence"}, // broken all the same
		{`{"a":1}`, "", ""}, {`{"a":1,,}`, "", ""}, {`{,}`, "", ""}, {`{"a":[,]}`, "", ""}, {`{"a":1`, "", ""}, {`{"a":1}}`, "", ""},
		{`{'a':1,}`, "", ""}, {`{"a":1,"a":2,}`, "", ""}, {"{\"a\":\"\x01\n\"}", "", ""}, {`[1,]`, "", ""}, {`1`, "", ""}, {"", "", ""}, {"\ufeff", "", ""},
		{"{\"a\":\"x\\\n\"}", "", ""}, {"{\"a\": 1\n,\n}", "{\"a\": 1\n\n}", "trailing_comma"},
	} {
		got, repaired, ok := RepairObject([]byte(c.text))
		if ok != (c.want != "") || ok && (string(got) != c.want || repaired != c.repaired) {
			t.Errorf("%q: %q, %q, %v; want %q, %q", c.text, got, repaired, ok, c.want, c.repaired)
		}
	}
}

// What is repaired is an object, in which nothing but white space, commas and the form of control characters has changed.
func FuzzMendObject(f *testing.F) {
	for _, s := range []string{"{\"a\":\"one\ntwo\",}", "\ufeff{}", `{"a":[1,]}`, "{\"a\\\n\":1}"} {
		f.Add(s)
	}
	plain := strings.NewReplacer("\\n", "", "\\r", "", "\\t", "", "\n", "", "\r", "", "\t", "", ",", "", " ", "", "\ufeff", "")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.HasPrefix(text, "\"") || strings.HasPrefix(text, "`") {
			return
		}
		got, repaired, ok := RepairObject([]byte(text))
		if !ok {
			return
		}
		if !IsObject(got, Limits{}) || repaired == "" || plain.Replace(string(got)) != plain.Replace(text) {
			t.Errorf("%q became %q (%s)", text, got, repaired)
		}
		if again, _, ok := RepairObject(got); ok {
			t.Errorf("%q is repaired again, to %q", got, again)
		}
	})
}
