package config

import (
	"fmt"
	"strings"
	"testing"
)

// The error of a file that is not YAML names the line of the fault, and what to look for there.
func TestFaultOfYAMLIsNamedByItsLine(t *testing.T) {
	t.Parallel()
	const rest = "telemetry:\n  content: false\ntools:\n  builtin: []\n"
	for name, tt := range map[string]struct {
		text string
		line int
		want string
	}{
		"indented too far":              {"models:\n  fast:\n    provider: sim\n    model: demo\n     profile: x\n" + rest, 5, "indentation"},
		"indented too little":           {"models:\n  fast:\n    provider: sim\n   model: demo\n" + rest, 4, "indentation"},
		"indented at the top":           {"default_model: sim/demo\n telemetry:\n  content: false\n", 2, "indentation"},
		"a bracket":                     {"models:\n  fast:\n    provider: sim\n    model: demo\n    pass: [a, b\n" + rest, 5, "is not closed"},
		"a bracket at the end":          {"default_model: sim/demo\ntools:\n  builtin: [calculator\n", 3, "is not closed"},
		"a brace":                       {"default_model: sim/demo\nkeys: {a: {tools: []\n" + rest, 2, "is not closed"},
		"a brace in the first line":     {"keys: {a: {tools: []\n" + rest, 1, "is not closed"},
		"a quotation mark":              {"default_model: sim/demo\ntools:\n  builtin: [\"calculator]\n" + strings.Repeat("# far from the end\n", 200), 3, "is not closed"},
		"no colon":                      {"default_model: sim/demo\ntelemetry\ntools:\n  builtin: []\n", 2, "colon"},
		"a colon in a text":             {"default_model: sim/demo\nmodels:\n  fast:\n    model: a: b\n" + rest, 4, "colon"},
		"a list among keys":             {"tools:\n  builtin: []\n  - calculator\n" + rest, 3, "indentation"},
		"a key among the items":         {"tools:\n  builtin:\n  - calculator\n  x: y\n   z: w\n", 5, ""},
		"a tab":                         {"tools:\n\tbuiltin: []\n", 2, "indented with a tab"},
		"after a long file":             {strings.Repeat("# a comment\n", 3000) + "a: [\n" + "b: 1\n", 3001, "is not closed"},
		"a text of several lines":       {"default_model: >\n  sim/demo\n  and more\ntools:\n  builtin: []\n x: 1\n", 6, "indentation"},
		"Windows line ends":             {"tools:\r\n  builtin: []\r\n   x: 1\r\n", 3, ""},
		"a second document":             {"tools:\n  builtin: []\n---\na: [\n", 4, ""},
		"an alias that is not declared": {"tools:\n  builtin: *x\n", 0, "unknown anchor"},
	} {
		_, err := parse("lathe.yaml", []byte(tt.text), &LoadOptions{})
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		at := fmt.Sprintf("lathe.yaml:%d: not YAML: ", tt.line)
		if tt.line == 0 {
			at = "not YAML: "
		}
		if text := err.Error(); !strings.Contains(text, at) || !strings.Contains(text, tt.want) {
			t.Errorf("%s: %s, want %s and %q", name, text, at, tt.want)
		}
	}
}
