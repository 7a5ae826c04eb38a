package dialect_test

import (
	"encoding/json"
	"os"
	"testing"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
	"github.com/lathe-run/lathe/internal/testkit/dialecttest"
)

// written are the dialects whose arguments the parser writes.
var written = []string{"qwen3-coder", "seed-oss", "glm", "laguna", "minimax-m2", "deepseek-dsml", "gemma4", "functiongemma",
	"pythonic", "lfm2", "olmo3", "glimmer"}

var writeTool = []*lathe.ToolSpec{{Name: "write", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},
	"text":{"type":"string"},"n":{"type":"integer"},"list":{"type":"array"},"opts":{"type":"object"},
	"maybe":{"anyOf":[{"type":"string"},{"type":"null"}]}}}`)}}

// Whatever the text and the cuts, the arguments of a call that ended are JSON in UTF-8.
func FuzzWrittenArguments(f *testing.F) {
	for i, name := range written {
		for _, c := range dialecttest.Cases(f, os.DirFS("testdata/"+name)) {
			f.Add(i, c.Input, uint64(3), 64)
			f.Add(i, c.Input, uint64(5), 0)
		}
	}
	f.Fuzz(func(t *testing.T, i int, text string, cut uint64, limit int) {
		d, _ := dialect.Lookup(written[uint(i)%uint(len(written))])
		o := &dialect.Options{Tools: writeTool, MaxPayloadBytes: max(0, limit%200)}
		deltas := dialecttest.Parse(t, d.NewParser(o), text)
		whole := dialecttest.Format(deltas)
		var cuts []int
		for at := 0; ; {
			cut = cut*6364136223846793005 + 1442695040888963407
			if at += 1 + int(cut>>33)%9; at >= len(text) {
				break
			}
			cuts = append(cuts, at)
		}
		if got := dialecttest.Format(dialecttest.Parse(t, d.NewParser(o), text, cuts...)); got != whole {
			t.Errorf("%s: text %q cut at %v:\n got:\n%s\nwant, as for the whole:\n%s", d.Name(), text, cuts, got, whole)
		}
		checkArguments(t, text, deltas)
	})
}

// checkArguments reports calls whose arguments are no JSON; none at all are an empty text where the
// model wrote JSON itself, whose bytes pass as they are.
func checkArguments(t *testing.T, text string, deltas []lathe.Delta) {
	t.Helper()
	var c dialect.Collector
	c.AddAll(deltas)
	m := c.Message()
	for _, call := range m.Calls() {
		args := call.Arguments
		if call.Incomplete || call.ParseError != "" || args == "" {
			continue
		}
		if !json.Valid([]byte(args)) || utf8.ValidString(text) && !utf8.ValidString(args) {
			t.Errorf("arguments of %s are no JSON: %q", call.Name, call.Arguments)
		}
	}
}

func FuzzQwen3Coder(f *testing.F) {
	dialecttest.Fuzz(f, os.DirFS("testdata/qwen3-coder"), "qwen3-coder")
}
func FuzzSeedOSS(f *testing.F) { dialecttest.Fuzz(f, os.DirFS("testdata/seed-oss"), "seed-oss") }
func FuzzGLM(f *testing.F)     { dialecttest.Fuzz(f, os.DirFS("testdata/glm"), "glm") }
func FuzzLaguna(f *testing.F)  { dialecttest.Fuzz(f, os.DirFS("testdata/laguna"), "laguna") }
func FuzzMiniMaxM2(f *testing.F) {
	dialecttest.Fuzz(f, os.DirFS("testdata/minimax-m2"), "minimax-m2")
}
func FuzzDeepSeekDSML(f *testing.F) {
	dialecttest.Fuzz(f, os.DirFS("testdata/deepseek-dsml"), "deepseek-dsml")
}
func FuzzGemma4(f *testing.F)   { dialecttest.Fuzz(f, os.DirFS("testdata/gemma4"), "gemma4") }
func FuzzPythonic(f *testing.F) { dialecttest.Fuzz(f, os.DirFS("testdata/pythonic"), "pythonic") }
func FuzzLFM2(f *testing.F)     { dialecttest.Fuzz(f, os.DirFS("testdata/lfm2"), "lfm2") }
func FuzzOLMo3(f *testing.F)    { dialecttest.Fuzz(f, os.DirFS("testdata/olmo3"), "olmo3") }
func FuzzGlimmer(f *testing.F)  { dialecttest.Fuzz(f, os.DirFS("testdata/glimmer"), "glimmer") }
func FuzzFunctionGemma(f *testing.F) {
	dialecttest.Fuzz(f, os.DirFS("testdata/functiongemma"), "functiongemma")
}
