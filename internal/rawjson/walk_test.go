package rawjson

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMembers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		obj  string
		want []string // key, value, key, value
	}{
		{`{}`, nil},
		{` { } `, nil},
		{`{"a":1}`, []string{`"a"`, `1`}},
		{" {\n\t\"a\" : 1 ,\r\n \"b\\\"\\u0063\" : { \"x\" : [ 1, \"]}\" ] } , \"\":\"\\\\\"\n} ",
			[]string{`"a"`, `1`, `"b\"\u0063"`, `{ "x" : [ 1, "]}" ] }`, `""`, `"\\"`}},
		{`{"a":true,"b":null,"c":-1.5e+3}`, []string{`"a"`, `true`, `"b"`, `null`, `"c"`, `-1.5e+3`}},
		{`[1]`, nil}, {`"x"`, nil}, {`1`, nil}, {``, nil},
	}
	for _, tt := range tests {
		var got []string
		for k, v := range Members([]byte(tt.obj)) {
			got = append(got, string(k), string(v))
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("Members(%s) (-want +got):\n%s", tt.obj, d)
		}
	}
	for k := range Members([]byte(`{"a":1,"b":2}`)) {
		if string(k) != `"a"` {
			t.Errorf("after stopping came %s", k)
		}
		break
	}
}

func TestElements(t *testing.T) {
	t.Parallel()
	tests := []struct {
		arr  string
		want []string
	}{
		{`[]`, nil},
		{` [ ] `, nil},
		{`[1,"a,]",[2,[3]], {"x":[4]} ,null]`, []string{`1`, `"a,]"`, `[2,[3]]`, `{"x":[4]}`, `null`}},
		{`{}`, nil}, {`1`, nil}, {``, nil},
	}
	for _, tt := range tests {
		var got []string
		for v := range Elements([]byte(tt.arr)) {
			got = append(got, string(v))
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("Elements(%s) (-want +got):\n%s", tt.arr, d)
		}
	}
	for range Elements([]byte(`[1,2]`)) {
		break
	}
}

// What is yielded must not let an append write into the text behind it.
func TestValuesHaveNoSpareCapacity(t *testing.T) {
	t.Parallel()
	obj := []byte(`{"a":1,"b":[2,3]}`)
	for k, v := range Members(obj) {
		_, _ = append(k, 'x'), append(v, 'x')
	}
	raw, _ := Get(obj, "b")
	for v := range Elements(raw) {
		_ = append(v, 'x')
	}
	if got, want := string(obj), `{"a":1,"b":[2,3]}`; got != want {
		t.Errorf("the text became %s", got)
	}
}

func TestGet(t *testing.T) {
	t.Parallel()
	obj := []byte(`{"a":1,"\u0062\"":{"a":2},"":null,"A":4,"🚀":5,"\ud83d\ude81":6,"e\n":7}`)
	tests := []struct {
		key, want string
		ok        bool
	}{
		{"a", `1`, true}, {`b"`, `{"a":2}`, true}, {"", `null`, true}, {"A", `4`, true}, {"🚀", `5`, true}, {"🚁", `6`, true}, {"e\n", `7`, true},
		{"b", ``, false}, {`\u0062\"`, ``, false}, {`e\n`, ``, false}, {"aa", ``, false},
	}
	for _, tt := range tests {
		got, ok := Get(obj, tt.key)
		if string(got) != tt.want || ok != tt.ok {
			t.Errorf("Get(%q) = %s, %v; want %s, %v", tt.key, got, ok, tt.want, tt.ok)
		}
	}
	if got, ok := Get([]byte(`{"x":1,"x":2}`), "x"); string(got) != "1" || !ok {
		t.Errorf("of equal keys Get takes %s, want the first", got)
	}
	if _, ok := Get([]byte(`["a"]`), "a"); ok {
		t.Error("Get finds a key in an array")
	}
}

func TestAppendCompact(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		` 1 `, "{ }", `""`, " [ 1 , 2 ,\t[ ] , { \"a b\\\" c\" : \" \\\\\" } ]\n", "{\r\n  \"a\": [true, false , null],\n  \"1\": -1.50E+3\n}",
		`"   spaces in   a string   "`, `{"html":"<a> \u2028"}`,
	} {
		var want bytes.Buffer
		if err := json.Compact(&want, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got := AppendCompact([]byte("x"), []byte(text)); string(got) != "x"+want.String() {
			t.Errorf("AppendCompact(%q) = %s, want x%s", text, got, want.String())
		}
	}
}

// Walking unchecked text has no defined result, but ends and stays in bounds.
func TestWalkingBrokenText(t *testing.T) {
	t.Parallel()
	whole := []byte(`{"a\"b": [1, {"x": "\u0041\\"}, null], "c" : {"d":[]}, "e":"f"} `)
	for cut := range whole {
		for _, extra := range []string{"", `"`, `\`, "}", "]", ",", ":", "\x00"} {
			for _, text := range [][]byte{slices.Concat(whole[:cut], []byte(extra)), slices.Concat([]byte(extra), whole[cut:])} {
				n := 0
				for range Members(text) {
					n++
				}
				for range Elements(text) {
					n++
				}
				if n > len(text) {
					t.Errorf("%q has %d parts", text, n)
				}
				Get(text, "c")
				AppendCompact(nil, text)
				AppendUnquoteLossy(nil, text)
				Scan(text, 0)
			}
		}
	}
}
