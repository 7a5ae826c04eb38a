package rawjson_test

import (
	"testing"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// TestAppendEditedKeepsOtherBytes: members that edit leaves alone keep their bytes, white space included.
func TestAppendEditedKeepsOtherBytes(t *testing.T) {
	edit := func(name string, value []byte) (key, to []byte, keep bool) {
		switch name {
		case "drop":
			return nil, nil, false
		case "set":
			return nil, []byte("2"), true
		case "rename":
			return []byte(`"new"`), value, true
		}
		return nil, value, true
	}
	more := func(dst []byte) []byte {
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		return append(dst, `"more":0`...)
	}
	for _, tt := range []struct{ in, want, withMore string }{
		{`{}`, `{}`, `{"more":0}`},
		{` { "a" : 1.0 , "set":1 } `, ` { "a" : 1.0 , "set":2 } `, ` { "a" : 1.0 , "set":2,"more":0 } `},
		{`{"drop":[1],"a":"\u0041"}`, `{"a":"\u0041"}`, `{"a":"\u0041","more":0}`},
		{`{"a":1,"drop":{}}`, `{"a":1}`, `{"a":1,"more":0}`},
		{`{"drop":1,"drop":2}`, `{}`, `{"more":0}`},
		{`{"rename" :1, "\u0073et":1}`, `{"new" :1, "\u0073et":2}`, `{"new" :1, "\u0073et":2,"more":0}`},
	} {
		if got := string(rawjson.AppendEdited(nil, []byte(tt.in), edit, nil)); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.in, got, tt.want)
		}
		if got := string(rawjson.AppendEdited([]byte("x"), []byte(tt.in), edit, more)); got != "x"+tt.withMore {
			t.Errorf("%s: got %s, want x%s", tt.in, got, tt.withMore)
		}
	}
}

func TestWithout(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ obj, want string }{
		{`{}`, `{}`}, {`{"a":1}`, `{"a":1}`}, {`{"x":[{"x":1}]}`, `{}`}, {` { "x" : "}" , "a" : {"x":2} } `, ` {"a" : {"x":2} } `}, {`{"a":1,"\u0078":2,"b":3}`, `{"a":1,"b":3}`},
	} {
		if got := rawjson.Without([]byte(c.obj), "x"); string(got) != c.want {
			t.Errorf("Without(%s) = %s, want %s", c.obj, got, c.want)
		}
	}
}
