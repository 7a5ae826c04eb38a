package dialect_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
	"github.com/lathe-run/lathe/internal/gbnf"
	"github.com/lathe-run/lathe/internal/schema"
	"github.com/lathe-run/lathe/internal/testdata"
)

// argumentsGrammar returns the grammar of one call of a tool with the schema, in the dialect tags.
func argumentsGrammar(t testing.TB, raw string) (*gbnfGrammar, []string) {
	t.Helper()
	c := constrain(t, "tags", &dialect.ConstraintOptions{Tools: []*lathe.ToolSpec{{Name: "f", Schema: []byte(raw)}}, Choice: lathe.ToolChoice{Mode: lathe.ChoiceRequired}, SingleCall: true})
	return readGBNF(t, c.GBNF), c.Loosened
}

// What a grammar does not say of a schema is listed by its path, and what it does say is not.
func TestLoosenedKeywordsAreListed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ property, loosened string }{
		{`{"type":"string"}`, ""},
		{`{"type":"string","minLength":2,"maxLength":1024,"description":"d","default":"x","title":"t","examples":["y"]}`, ""},
		{`{"type":"string","pattern":"^a"}`, "f.p.pattern"},
		{`{"type":"string","format":"date"}`, "f.p.format"},
		{`{"type":"string","maxLength":1025}`, "f.p.maxLength"},
		{`{"type":"integer","minimum":-5,"exclusiveMaximum":17}`, ""},
		{`{"type":"integer","minimum":0.5}`, "f.p.minimum"},
		{`{"type":"integer","multipleOf":5}`, "f.p.multipleOf"},
		{`{"type":"number","minimum":0}`, ""},
		{`{"type":"number","maximum":1}`, "f.p.maximum"},
		{`{"type":["string","null"]}`, ""},
		{`{"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":4}`, ""},
		{`{"type":"array","items":{"type":"integer"},"uniqueItems":true}`, "f.p.uniqueItems"},
		{`{"type":"array"}`, "f.p.items.any"},
		{`{"type":"object","properties":{"a":{"type":"integer"}},"minProperties":1}`, "f.p.minProperties"},
		{`{"type":"object","properties":{"a":{"type":"integer"}},"patternProperties":{"^x":{}}}`, "f.p.patternProperties"},
		{`{"type":"object","additionalProperties":{"type":"integer"}}`, "f.p.additionalProperties"},
		{`{"oneOf":[{"type":"integer"},{"type":"string"}]}`, "f.p.oneOf"},
		{`{"anyOf":[{"type":"integer"},{"type":"string"}]}`, ""},
		{`{"allOf":[{"type":"object","properties":{"a":{"type":"integer"}}},{"required":["a"]}]}`, ""},
		{`{"allOf":[{"type":"integer","minimum":1},{"minimum":3}]}`, "f.p.allOf.minimum"},
		{`{"type":"integer","not":{"const":3}}`, "f.p.not"},
		{`{"type":"string","if":{"const":"a"},"then":{"minLength":2}}`, "f.p.if"},
		{`{"$ref":"#/$defs/d"}`, ""},
		{`{"$ref":"https://example.com/x"}`, "f.p.$ref f.p.any"},
		{`{"enum":["a",1,null,{"b":[true]}]}`, ""},
		{`{}`, "f.p.any"},
		{`{"type":"array","items":{"type":"string"},"enum":["a"]}`, "f.p.enum"},
	} {
		_, loosened := argumentsGrammar(t, `{"type":"object","properties":{"p":`+tt.property+`},"required":["p"],"additionalProperties":false,"$defs":{"d":{"type":"boolean"}}}`)
		want := strings.Fields(tt.loosened)
		slices.Sort(want)
		slices.Sort(loosened)
		if d := cmp.Diff(want, loosened, cmp.Transformer("list", func(l []string) string { return strings.Join(l, " ") })); d != "" {
			t.Errorf("%s: %s", tt.property, d)
		}
	}
}

// The paths of a schema with long names are cut: they are in the log of each model call.
func TestLoosenedPathsAreShort(t *testing.T) {
	t.Parallel()
	if _, loosened := argumentsGrammar(t, `{"type":"object","properties":{"`+strings.Repeat("p", 6_000)+`":{"type":"string","pattern":"a"}}}`); len(loosened) != 1 || len(loosened[0]) > 600 {
		t.Errorf("%.1000q", loosened)
	}
}

// A schema that refers to itself several times at each level is refused, and not followed for hours.
func TestConstrainBoundsReferences(t *testing.T) {
	t.Parallel()
	twice := func(schema string) string { return strings.Join([]string{schema, schema}, ",") }
	many := strings.TrimSuffix(strings.Repeat(`{"$ref":"#/$defs/a"},`, 60), ",")
	for name, def := range map[string]string{
		"allOf":      `{"type":"object","allOf":[` + twice(`{"$ref":"#/$defs/a"}`) + `]}`,
		"properties": `{"type":"object","properties":{"l":{"allOf":[{"$ref":"#/$defs/a"}]},"r":{"allOf":[{"$ref":"#/$defs/a"}]}}}`,
		"anyOf":      `{"anyOf":[` + many + `]}`,
	} {
		for _, d := range []string{"tags", "qwen3-coder", "pythonic"} {
			tool := &lathe.ToolSpec{Name: "f", Schema: []byte(`{"type":"object","$defs":{"a":` + def + `},"properties":{"x":{"allOf":[{"$ref":"#/$defs/a"}]},"y":{"$ref":"#/$defs/a"}}}`)}
			_, err := lookup(t, d).Constrain(&dialect.ConstraintOptions{Tools: []*lathe.ToolSpec{tool}})
			if err == nil != (name == "anyOf" && d != "qwen3-coder") {
				t.Errorf("%s of %s: %v", name, d, err)
			}
		}
	}
}

// Schemas that no arguments fit, and those that would make a grammar too large, are refused, as are dialects, tools and choices without
// a call.
func TestConstrainRefuses(t *testing.T) {
	t.Parallel()
	tool := func(name, raw string) []*lathe.ToolSpec { return []*lathe.ToolSpec{{Name: name, Schema: []byte(raw)}} }
	var many, long strings.Builder
	for i := range 513 {
		fmt.Fprintf(&many, `"p%d":{"type":"string"},`, i)
	}
	for i := range 2001 {
		fmt.Fprintf(&long, `"v%d",`, i)
	}
	for _, tt := range []struct {
		dialect string
		opts    dialect.ConstraintOptions
		want    string
	}{
		{"auto", dialect.ConstraintOptions{Tools: constrainedTools}, "name the dialect"},
		{"tags", dialect.ConstraintOptions{}, "no tool"},
		{"tags", dialect.ConstraintOptions{Tools: []*lathe.ToolSpec{{Name: "a", Hidden: true}}}, "no tool"},
		{"tags", dialect.ConstraintOptions{Tools: constrainedTools, Choice: lathe.ToolChoice{Mode: lathe.ChoiceNone}}, "none allows no call"},
		{"tags", dialect.ConstraintOptions{Tools: constrainedTools, Choice: lathe.ToolChoice{Mode: lathe.ChoiceFunction, Name: "sub"}}, "no tool"},
		{"tags", dialect.ConstraintOptions{Tools: tool("a b", `{}`)}, "tool name"},
		{"tags", dialect.ConstraintOptions{Tools: tool("f", `{"type":"object","properties":{"p":false},"required":["p"]}`)}, "f.p: no value fits"},
		{"tags", dialect.ConstraintOptions{Tools: tool("f", `{"type":"object","properties":{"p":{"type":"integer","minimum":3,"maximum":2}}}`)}, "f.p: no integer"},
		{"tags", dialect.ConstraintOptions{Tools: tool("f", `{"type":"object","properties":{"p":{"type":"string","minLength":3,"maxLength":2}}}`)}, "maxLength is below minLength"},
		{"tags", dialect.ConstraintOptions{Tools: tool("f", `{"type":"object","properties":{`+strings.TrimSuffix(many.String(), ",")+`}}`)}, "more than 512 properties"},
		{"tags", dialect.ConstraintOptions{Tools: tool("f", `{"type":"object","properties":{"p":{"enum":[`+strings.TrimSuffix(long.String(), ",")+`]}}}`)}, "more than 2000 values"},
		{"tags", dialect.ConstraintOptions{Tools: tool("f", `{"type":"object","properties":{"p":{"const":"`+strings.Repeat("x", gbnf.MaxBytes)+`"}}}`)}, "too large"},
	} {
		c, err := lookup(t, tt.dialect).Constrain(&tt.opts)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %+v: %v, want %q; %v", tt.dialect, tt.opts.Choice, err, tt.want, c != nil)
		}
	}
	var deep strings.Builder
	for range 300 {
		deep.WriteString(`{"type":"array","items":`)
	}
	if _, loosened := argumentsGrammar(t, `{"type":"object","properties":{"p":`+deep.String()+"{}"+strings.Repeat("}", 300)+`}}`); len(loosened) == 0 || !strings.HasSuffix(loosened[0], ".depth") {
		t.Errorf("a deep schema: %q", loosened)
	}
}

// The grammar of a range of integers accepts these and no others.
func TestIntegersOfGrammars(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 1))
	for range 60 {
		least := random.IntN(2600) - 1300
		most := least + random.IntN(1500)
		g, loosened := argumentsGrammar(t, fmt.Sprintf(`{"type":"object","properties":{"p":{"type":"integer","minimum":%d,"maximum":%d}},"required":["p"]}`, least, most))
		if len(loosened) > 0 {
			t.Fatal(loosened)
		}
		for _, n := range []int{least - 1, least, least + 1, most - 1, most, most + 1, 0, -1, 1, 9, 10, 99, 100, 999, 1000, random.IntN(3000) - 1500, random.IntN(3000) - 1500} {
			if got := g.accepts(fmt.Sprintf(`<tool name="f" args>{"p":%d}</tool>`, n)); got != (least <= n && n <= most) {
				t.Fatalf("%d within %d and %d: %v", n, least, most, got)
			}
		}
	}
}

// functions returns the schemas of the functions of the Berkeley leaderboard.
func functions(t testing.TB) map[string]json.RawMessage {
	t.Helper()
	f, err := os.Open(testdata.Dir(t, "bfcl", "arg_validation.schemas.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	list := map[string]json.RawMessage{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var s struct {
			Schema     string
			Parameters json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatal(err)
		}
		list[s.Schema] = s.Parameters
	}
	return list
}

// For each of 589 schemas that people wrote, a dialect of each kind has a grammar, whose texts are calls; their arguments are valid
// unless the grammar lists what it does not say.
func TestGrammarsOfRealFunctions(t *testing.T) {
	t.Parallel()
	list := functions(t)
	for _, name := range []string{"hermes", "qwen3-coder", "gemma4", "pythonic"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			exact := 0
			for id, raw := range list {
				tools := []*lathe.ToolSpec{{Name: "f", Schema: raw}}
				s, err := schema.Compile(raw)
				if err != nil {
					t.Fatal(err)
				}
				c := constrain(t, name, &dialect.ConstraintOptions{Tools: tools, Choice: lathe.ToolChoice{Mode: lathe.ChoiceRequired}, SingleCall: true})
				if len(c.Loosened) == 0 {
					exact++
				}
				w := &walker{g: readGBNF(t, c.GBNF), random: rand.New(rand.NewPCG(5, 5)), letters: oddLetters, budget: 200}
				for range 2 {
					text := w.text()
					got := readBack(t, name, text, tools)
					calls := got.message.Calls()
					if got.failures > 0 || len(calls) != 1 || calls[0].Incomplete {
						t.Fatalf("%s: %q is read as %+v", id, text, calls)
					}
					if bad := s.ValidateArguments([]byte(calls[0].Arguments)); len(bad) > 0 && len(c.Loosened) == 0 {
						t.Fatalf("%s %s: %q: %+v", id, raw, text, bad)
					}
				}
			}
			t.Logf("%d of %d exact", exact, len(list))
			if exact < len(list)*8/10 {
				t.Errorf("only %d of %d schemas are said exactly", exact, len(list))
			}
		})
	}
}
