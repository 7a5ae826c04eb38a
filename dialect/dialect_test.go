package dialect_test

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
	"github.com/lathe-run/lathe/internal/testkit/dialecttest"
)

func TestLookup(t *testing.T) {
	t.Parallel()
	names := dialect.Names()
	if names[len(names)-1] != "auto" || !slices.Contains(names, "harmony") || !slices.Contains(names, "tags") {
		t.Errorf("Names() = %v", names)
	}
	for _, name := range names {
		if d, ok := dialect.Lookup(name); !ok || d.Name() != name {
			t.Errorf("Lookup(%q) = %v, %v", name, d, ok)
		}
	}
	for _, name := range []string{"", "native", "Harmony", "none"} {
		if _, ok := dialect.Lookup(name); ok {
			t.Errorf("Lookup(%q) finds one", name)
		}
	}
}

func TestForModel(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]string{"openai/gpt-oss-120b": "harmony", "GPT-OSS:20b": "harmony", "gpt-4o": "", "": ""} {
		if got, ok := dialect.ForModel(model); got != want || ok != (want != "") {
			t.Errorf("ForModel(%q) = %q, %v, want %q", model, got, ok, want)
		}
	}
}

func TestFlushReportsIncomplete(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ dialect, text string }{
		{"harmony", `<|channel|>commentary to=functions.f<|message|>{"a":`}, {"harmony", "<|channel|>commentary to=functions.f"},
		{"harmony", `<|channel|>tool<|message|>{"tool":"f"`}, {"tags", `<tool name="a" args>{"x":`}, {"tags", `<tool name="a" args`}, {"auto", `<tool name="a" args>{`},
	} {
		p := lookup(t, c.dialect).NewParser(nil)
		if _, err := p.Flush(p.Append(nil, c.text)); !errors.Is(err, dialect.ErrIncomplete) {
			t.Errorf("%s: %q: Flush says %v", c.dialect, c.text, err)
		}
	}
}

func TestAnomalies(t *testing.T) {
	t.Parallel()
	const final, analysis, commentary = "<|channel|>final<|message|>a<|end|>", "<|channel|>analysis<|message|>b<|end|>", "<|channel|>commentary<|message|>c<|end|>"
	for text, want := range map[string]map[string]int{
		analysis + commentary + final:                          {},
		"plain text":                                           {},
		"<|channel|>debug<|message|>x<|end|>":                  {"unknown_channel": 1},
		"<|start|>user<|message|>x<|end|>":                     {"foreign_role": 1},
		"<|channel|>analysis x<|end|>":                         {"header": 1},
		"<|channel|>anal":                                      {"truncated_header": 1},
		analysis + "stray" + "<|start|>assistant" + final:      {"stray_text": 1},
		final + final:                                          {"extra_final": 1},
		final + analysis + commentary:                          {"analysis_after_final": 1, "commentary_after_final": 1},
		final + analysis + final:                               {"analysis_after_final": 1, "extra_final": 1, "interleaved_final": 1},
		final + "<|channel|>final<|message|>cut":               {"extra_final": 1},
		analysis + "\n" + final + "<|channel|>tool<|message|>": {},
	} {
		for _, name := range []string{"harmony", "auto"} {
			p := lookup(t, name).NewParser(nil)
			for _, c := range []byte(text) {
				p.Append(nil, string(c))
			}
			if _, err := p.Flush(nil); err != nil && !errors.Is(err, dialect.ErrIncomplete) {
				t.Fatal(err)
			}
			a := p.(dialect.Counter).Anomalies()
			got := maps.Collect(a.ParseErrors())
			maps.Insert(got, a.UnexpectedOrder())
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %q: -want +got:\n%s", name, text, diff)
			}
		}
	}
}

func TestIDs(t *testing.T) {
	t.Parallel()
	n := uint64(0)
	opts := &dialect.Options{Rand: func() uint64 { n += 0x9e3779b97f4a7c15; return n }}
	seen := map[string]bool{}
	for range 20 {
		for _, d := range dialecttest.Parse(t, lookup(t, "tags").NewParser(opts), `<tool name="a" args>{}</tool>`) {
			if d.Kind == lathe.DeltaCallStart {
				if !regexp.MustCompile(`^call_[A-Za-z0-9]{24}$`).MatchString(d.ID) || seen[d.ID] {
					t.Errorf("id %q", d.ID)
				}
				seen[d.ID] = true
			}
		}
	}
	if len(seen) != 20 {
		t.Errorf("%d ids, want 20", len(seen))
	}
}

func TestNewAutoChooses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"text": "", "a <|start|>assistant": "harmony", "a\n<tool name=": "tags", "`<tool name=`": ""} {
		p := dialect.NewAuto(nil)
		p.Append(nil, text)
		if got := p.(dialect.Chooser).Chosen(); got != want {
			t.Errorf("%q: chose %q, want %q", text, got, want)
		}
	}
}

func TestThink(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"<think>a</think>b":                 "reasoning \"a\"\ntext \"b\"\n",
		"[THINK]a</think>[/THINK]b":         "reasoning \"a</think>\"\ntext \"b\"\n",
		"<|START_THINKING|>a":               "reasoning \"a\"\n",
		"\n<seed:think>a</seed:think>":      "text \"\\n\"\nreasoning \"a\"\n",
		"a <think> b\n<think>c":             "text \"a <think> b\\n\"\nreasoning \"c\"\n",
		"```\n<think>\n```\n<tool_call> <t": "text \"```\\n<think>\\n```\\n<tool_call> <t\"\n",
		"a</think>b</think>":                "text \"ab</think>\"\n",
		"<think>a</think><think>b</think>c": "reasoning \"ab\"\ntext \"c\"\n",
	} {
		got := dialecttest.Format(dialecttest.Check(t, func() dialect.Parser { return dialect.NewThink(nil) }, "", text))
		if got != want {
			t.Errorf("%q:\n got:\n%s\nwant:\n%s", text, got, want)
		}
	}
}

func TestCollector(t *testing.T) {
	t.Parallel()
	const text = `<|channel|>analysis<|message|>hm<|end|><|channel|>commentary<|message|>I look.<|end|>` +
		`<|channel|>commentary to=functions.f<|message|>{"a":1}<|call|><|channel|>tool<|message|>{"tool":"g","arguments":{x}<|end|>` +
		`<|channel|>tool<|message|>[]<|end|><|channel|>final<|message|>ok<|end|><|channel|>commentary to=functions.h<|message|>{"b"`
	c := dialect.Collector{Dialect: "harmony"}
	p := lookup(t, "harmony").NewParser(nil)
	for _, r := range text {
		c.AddAll(p.Append(nil, string(r)))
	}
	deltas, _ := p.Flush(nil)
	c.AddAll(deltas)
	want := lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{
		lathe.Reasoning{Text: "hm"}, lathe.Text{Text: "I look.", Commentary: true},
		lathe.ToolCall{Name: "f", Arguments: `{"a":1}`, Dialect: "harmony"},
		lathe.ToolCall{Name: "g", Arguments: `{`, Dialect: "harmony", Incomplete: true, ParseError: lathe.CodePayloadParseError},
		lathe.Text{Text: `{"tool":"g","arguments":{x}[]`, Unreadable: true},
		lathe.ToolCall{Arguments: "[]", Dialect: "harmony", ParseError: lathe.CodePayloadParseError},
		lathe.Text{Text: "ok"},
		lathe.ToolCall{Name: "h", Arguments: `{"b"`, Dialect: "harmony", Incomplete: true},
	}}
	got := c.Message()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	failures := []dialect.Failure{
		{Code: lathe.CodePayloadParseError, Name: "g", Excerpt: `{"tool":"g","arguments":{x}`, Bytes: 27},
		{Code: lathe.CodePayloadParseError, Excerpt: "[]", Bytes: 2},
	}
	if diff := cmp.Diff(failures, c.Failures()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
