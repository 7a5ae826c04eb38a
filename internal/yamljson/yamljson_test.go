package yamljson_test

import (
	"fmt"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/lathe-run/lathe/internal/yamljson"
)

func TestAppend(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"{b: 1, a: [x, '1', ~, true]}":                  `{"b":1,"a":["x","1",null,true]}`,
		"{a: 1.50, b: 0x10, c: 1e30}":                   `{"a":1.50,"b":16,"c":1e30}`,
		"123456789012345678901234567890":                "123456789012345678901234567890",
		"{a: 2001-01-01, b: yes, c: '<é>'}":             `{"a":"2001-01-01","b":"yes","c":"<é>"}`,
		"[]":                                            "[]",
		"[!!null x, !!null , !!null null]":              "[null,null,null]",
		"[[1,\n !!bool x]]":                             `line 2: "x" is not a value that JSON has`,
		"\n{a: .nan}":                                   `line 2: ".nan" is not a value that JSON has`,
		"{a: 1,\n a: 2}":                                `line 2: "a" stands twice`,
		"{? [x] : 1}":                                   "line 1: a key is a plain word",
		"a: &x {b: 1}\nc: {<<: *x}":                     "line 2: a key is a plain word",
		"{a: &x 1, b: *x}":                              "line 1: anchors and aliases are not read here",
		strings.Repeat("[", 5) + strings.Repeat("]", 5): "line 1: it is nested too deeply",
	} {
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte(in), &doc); err != nil {
			t.Fatalf("%s: %v", in, err)
		}
		got, line, err := yamljson.Append(nil, doc.Content[0], 4)
		if err != nil {
			got = fmt.Appendf(nil, "line %d: %s", line, err)
		}
		if string(got) != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}
