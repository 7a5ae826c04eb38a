package text_test

import (
	"testing"

	"github.com/lathe-run/lathe/internal/text"
)

func TestResolveToolNameTakesResidueOffWhereTheRestIsOffered(t *testing.T) {
	t.Parallel()
	offered := func(name string) bool {
		return name == "exec" || name == "to_json" || name == "functions.own" || name == "json"
	}
	for name, want := range map[string]string{
		"exec": "exec", "functions.own": "functions.own", "to_json": "to_json", "json": "json",
		"exec<|channel|>commentary": "exec", "exec <|constrain|>json": "exec",
		"functions.exec": "exec", "functions:exec": "exec", "default_api.exec": "exec", "default_api:exec": "exec",
		"execjson": "exec", "functions.execjson<|message|>": "exec", "functions.to_json": "to_json",
		"exe": "", "": "", "<|channel|>": "", "functions.": "", "functions.functions.exec": "", "my.exec": "", "exec_json": "", "jsonexec": "",
	} {
		got, ok := text.ResolveToolName(name, offered)
		if ok != (want != "") || ok && got != want || !ok && got != name {
			t.Errorf("%q: %q, %v, want %q", name, got, ok, want)
		}
	}
}
