package dialect_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
	"github.com/lathe-run/lathe/internal/schema"
	"github.com/lathe-run/lathe/internal/testkit/dialecttest"
)

// constrained are the dialects that have a grammar: all but auto, which is none of its own.
func constrained() []string {
	return slices.DeleteFunc(dialect.Names(), func(name string) bool { return name == "auto" })
}

// constrainedTools have the kinds of arguments that schemas of tools have.
var constrainedTools = []*lathe.ToolSpec{
	{Name: "add", Schema: []byte(`{"type":"object","properties":{"a":{"type":"integer","minimum":-7,"maximum":1205},"b":{"type":"number","minimum":0}},"required":["a"],"additionalProperties":false}`)},
	{Name: "save_note", Schema: []byte(`{"type":"object","properties":{"title":{"type":"string","minLength":1,"maxLength":12},"text":{"type":"string"},"kind":{"enum":["todo","done","\"quoted\""]},"tags":{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":3},"pinned":{"type":"boolean"},"due":{"type":["string","null"]},"n":{"anyOf":[{"type":"integer"},{"type":"null"}]}},"required":["title","tags"]}`)},
	{Name: "ping"},
	{Name: "tree", Schema: []byte(`{"type":"object","properties":{"node":{"$ref":"#/$defs/node"},"at":{"type":"object","properties":{"x":{"type":"integer"},"y":{"type":"integer"}},"required":["x","y"]},"matrix":{"type":"array","items":{"type":"array","items":{"type":"number"}}},"mode":{"const":"deep"}},"required":["node","at"],"$defs":{"node":{"type":"object","properties":{"v":{"type":"string"},"next":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]}},"required":["v"]}}}`)},
}

// plainLetters open no quotation, code or indentation: a call after them is a call.
var plainLetters = []rune("abcxyzABC0129.,;?!é日\n🎉")

// oddLetters are what formats, JSON and Markdown give a meaning to.
var oddLetters = []rune("ab1 \t\n\"'`<>[]{}()=|/\\:,.*_-#&%$@!?éß日🎉\u2028")

func constrain(t testing.TB, name string, o *dialect.ConstraintOptions) *dialect.Constraint {
	t.Helper()
	c, err := lookup(t, name).Constrain(o)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return c
}

// A readTurn is what the parser of a dialect reads in a text that a model was made to write.
type readTurn struct {
	message  lathe.Message
	failures int
}

func readBack(t testing.TB, name, text string, tools []*lathe.ToolSpec) readTurn {
	t.Helper()
	p := lookup(t, name).NewParser(&dialect.Options{Tools: tools, MaxPayloadBytes: 1 << 20})
	var c dialect.Collector
	c.AddAll(dialecttest.Parse(t, p, text))
	return readTurn{c.Message(), len(c.Failures())}
}

// validators compiles the schemas of the tools.
func validators(t testing.TB, tools []*lathe.ToolSpec) map[string]*schema.Schema {
	t.Helper()
	list := map[string]*schema.Schema{}
	for _, tool := range tools {
		raw := tool.Schema
		if raw == nil {
			raw = []byte(`{"type":"object","additionalProperties":false}`)
		}
		s, err := schema.Compile(raw)
		if err != nil {
			t.Fatal(err)
		}
		list[tool.Name] = s
	}
	return list
}

// walks is how many random texts of each grammar are tried: 30 grammars, so 15 000 in all. `go test ./dialect -walks 10000` tries more.
var walks = flag.Int("walks", 500, "random texts of each grammar")

// Whatever a model can write under a grammar that demands calls, the parser reads as calls of known tools with valid arguments, and
// nothing of it is unreadable.
func TestWalksOfGrammarsAreValidCalls(t *testing.T) {
	t.Parallel()
	valid := validators(t, constrainedTools)
	for _, name := range constrained() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := *walks
			for i, single := range []bool{false, true} {
				c := constrain(t, name, &dialect.ConstraintOptions{Tools: constrainedTools, Choice: lathe.ToolChoice{Mode: lathe.ChoiceRequired}, SingleCall: single})
				w := &walker{g: readGBNF(t, c.GBNF), random: rand.New(rand.NewPCG(7, uint64(i))), letters: oddLetters, budget: 160}
				for range n / 2 {
					text := w.text()
					got := readBack(t, name, text, constrainedTools)
					calls := got.message.Calls()
					if got.failures > 0 || len(calls) == 0 || single && len(calls) > 1 || strings.TrimSpace(got.message.Text()) != "" {
						t.Fatalf("%q is read as %d calls, %d failures, text %q", text, len(calls), got.failures, got.message.Text())
					}
					for _, call := range calls {
						check(t, valid, text, call)
					}
				}
			}
		})
	}
}

func check(t testing.TB, valid map[string]*schema.Schema, text string, call lathe.ToolCall) {
	t.Helper()
	s := valid[call.Name]
	if s == nil || call.ParseError != "" || call.Incomplete || !json.Valid([]byte(call.Arguments)) {
		t.Fatalf("%q has the call %+v", text, call)
	}
	if bad := s.ValidateArguments([]byte(call.Arguments)); len(bad) > 0 {
		t.Fatalf("%q has the arguments %s: %+v", text, call.Arguments, bad)
	}
}

// Where text may stand before calls, a text that opens no quotation leaves each call a call; any other text may quote calls, which are
// then text. Nothing is unreadable in either.
func TestWalksWithTextHaveNothingUnreadable(t *testing.T) {
	t.Parallel()
	valid := validators(t, constrainedTools)
	for _, name := range constrained() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := *walks
			g := readGBNF(t, constrain(t, name, &dialect.ConstraintOptions{Tools: constrainedTools}).GBNF)
			called := 0
			for _, letters := range [][]rune{plainLetters, oddLetters} {
				w := &walker{g: g, random: rand.New(rand.NewPCG(3, uint64(len(letters)))), letters: letters, budget: 120}
				for range n / 2 {
					text := w.text()
					got := readBack(t, name, text, constrainedTools)
					if got.failures > 0 {
						t.Fatalf("%q has %d failures", text, got.failures)
					}
					for _, call := range got.message.Calls() {
						called++
						check(t, valid, text, call)
					}
				}
			}
			if called < n/100 {
				t.Errorf("only %d calls in %d texts", called, n)
			}
		})
	}
}

// writtenCalls returns calls as the writer of a dialect puts them into a history.
func writtenCalls(t testing.TB, name string, calls ...lathe.ToolCall) string {
	t.Helper()
	var text strings.Builder
	d := lookup(t, name)
	if name == "harmony" {
		return strings.TrimPrefix(string(d.AppendCall(nil, calls[0])), "assistant") // which is in the prompt
	}
	if name == "glimmer" {
		text.WriteString(" to=" + calls[0].Name + "<|message|>") // which the server writes
	}
	var parts []lathe.Part
	for _, c := range calls {
		parts = append(parts, c)
	}
	for _, m := range d.Rewrite(&lathe.Request{Tools: constrainedTools, Messages: []lathe.Message{lathe.User("a"), {Role: lathe.RoleAssistant, Parts: parts}}}).Messages {
		if m.Role == lathe.RoleAssistant {
			text.WriteString(m.Text())
		}
	}
	return text.String()
}

// An instance generator makes random values of the schemas of constrainedTools, with the members in the order of the schema.
type instances struct{ *rapid.T }

func (g instances) text(label string) string {
	return quoted(g.T, strings.ReplaceAll(genText.Draw(g.T, label), "\x00", ""))
}

func (g instances) maybe(members []string, label, member string) []string {
	if rapid.Bool().Draw(g.T, label) {
		return append(members, `"`+label+`":`+member)
	}
	return members
}

func (g instances) node(depth int) string {
	node := `{"v":` + g.text("v")
	if depth > 0 && rapid.Bool().Draw(g.T, "next") {
		return node + `,"next":` + g.node(depth-1) + "}"
	}
	return node + rapid.SampledFrom([]string{"}", `, "next": null}`}).Draw(g.T, "end")
}

func (g instances) call() lathe.ToolCall {
	c := lathe.ToolCall{ID: "call00001", Name: rapid.SampledFrom([]string{"add", "save_note", "ping", "tree"}).Draw(g.T, "name")}
	var m []string
	switch c.Name {
	case "add":
		m = append(m, fmt.Sprintf(`"a":%d`, rapid.IntRange(-7, 1205).Draw(g.T, "a")))
		m = g.maybe(m, "b", rapid.SampledFrom([]string{"0", "1.50", "2e5", "7.25E-3", "9007199254740993"}).Draw(g.T, "number"))
	case "save_note":
		m = append(m, `"title":`+quoted(g.T, rapid.StringMatching(`[a-zA-Zé日{}"\\/ ]{1,12}`).Draw(g.T, "title")))
		m = g.maybe(m, "text", g.text("text value"))
		m = g.maybe(m, "kind", rapid.SampledFrom([]string{`"todo"`, `"done"`, `"\"quoted\""`}).Draw(g.T, "kind value"))
		m = append(m, `"tags":[`+strings.Join(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string { return instances{t}.text("tag") }), 1, 3).Draw(g.T, "tags"), ", ")+"]")
		m = g.maybe(m, "pinned", "true")
		m = g.maybe(m, "due", rapid.SampledFrom([]string{"null", `"null"`, `"soon"`, `"12"`}).Draw(g.T, "due value"))
		m = g.maybe(m, "n", rapid.SampledFrom([]string{"null", "12", "-3"}).Draw(g.T, "n value"))
	case "tree":
		m = append(m, `"node":`+g.node(2), `"at":{"x":1, "y":-2}`)
		m = g.maybe(m, "matrix", rapid.SampledFrom([]string{"[]", "[[1,2.5],[]]", "[[-0.5]]"}).Draw(g.T, "matrix value"))
		m = g.maybe(m, "mode", `"deep"`)
	}
	c.Arguments = "{" + strings.Join(m, rapid.SampledFrom([]string{",", ", "}).Draw(g.T, "comma")) + "}"
	return c
}

// The grammar of a dialect accepts what its writer writes, so that a model is not forced off the spelling that it was taught.
func TestGrammarsAcceptWrittenCalls(t *testing.T) {
	t.Parallel()
	valid := validators(t, constrainedTools)
	for _, name := range constrained() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			must := readGBNF(t, constrain(t, name, &dialect.ConstraintOptions{Tools: constrainedTools, Choice: lathe.ToolChoice{Mode: lathe.ChoiceRequired}}).GBNF)
			may := readGBNF(t, constrain(t, name, &dialect.ConstraintOptions{Tools: constrainedTools}).GBNF)
			rapid.Check(t, func(rt *rapid.T) {
				g := instances{rt}
				call := g.call()
				if bad := valid[call.Name].ValidateArguments([]byte(call.Arguments)); len(bad) > 0 {
					rt.Fatalf("%s: %+v", call.Arguments, bad)
				}
				text := writtenCalls(t, name, call)
				if !must.accepts(text) {
					rt.Fatalf("refused: %q", text)
				}
				if !may.accepts(text) {
					rt.Fatalf("refused where text is allowed: %q", text)
				}
			})
		})
	}
}

// The grammar of a dialect refuses calls that no tool accepts.
func TestGrammarsRefuseInvalidCalls(t *testing.T) {
	t.Parallel()
	for _, name := range constrained() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := &dialect.ConstraintOptions{Tools: constrainedTools, Choice: lathe.ToolChoice{Mode: lathe.ChoiceRequired}}
			g := readGBNF(t, constrain(t, name, opts).GBNF)
			opts.Choice = lathe.ToolChoice{Mode: lathe.ChoiceFunction, Name: "ping"}
			ping := readGBNF(t, constrain(t, name, opts).GBNF)
			call := func(tool, args string) string {
				return writtenCalls(t, name, lathe.ToolCall{ID: "call00001", Name: tool, Arguments: args})
			}
			if good := call("add", `{"a":7}`); !g.accepts(good) || ping.accepts(good) {
				t.Errorf("%q: accepted %v, and %v where another tool is chosen", good, g.accepts(good), ping.accepts(good))
			}
			for what, text := range map[string]string{
				"wrong type": call("add", `{"a":"x"}`), "fraction": call("add", `{"a":7.5}`), "out of range": call("add", `{"a":1206}`), "missing": call("add", `{"b":1}`),
				"further": call("add", `{"a":7,"c":1}`), "unknown tool": call("sub", `{"a":7}`), "not in the enumeration": call("save_note", `{"title":"a","kind":"other","tags":["a"]}`),
				"too long": call("save_note", `{"title":"abcdefghijklm","tags":["a"]}`), "too many": call("save_note", `{"title":"a","tags":["a","b","c","d"]}`), "too few": call("save_note", `{"title":"a","tags":[]}`),
				"inner missing": call("tree", `{"node":{"v":"a"},"at":{"x":1}}`), "recursive missing": call("tree", `{"node":{"v":"a","next":{}},"at":{"x":1,"y":1}}`),
				"cut off": strings.TrimSuffix(call("add", `{"a":7}`), "}")[:len(call("add", `{"a":7}`))/2], "text only": "Hello.",
			} {
				if g.accepts(text) {
					t.Errorf("%s: %q is accepted", what, text)
				}
			}
		})
	}
}
