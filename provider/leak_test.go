package provider_test

import (
	"context"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/visible"
	"github.com/lathe-run/lathe/provider"
)

// A parrot is a model that says one text, in pieces.
type parrot struct {
	text  string
	piece int
	asked *lathe.Request
}

func (*parrot) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (p *parrot) Generate(_ context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	p.asked = req
	return func(yield func(lathe.Delta, error) bool) {
		for rest := p.text; rest != ""; {
			n := min(p.piece, len(rest))
			if !yield(lathe.Delta{Kind: lathe.DeltaText, Text: rest[:n]}, nil) {
				return
			}
			rest = rest[n:]
		}
		yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: &lathe.Finish{Message: lathe.Assistant(p.text), Reason: lathe.FinishStop}}, nil)
	}
}

var addTool = []*lathe.ToolSpec{{Name: "add_numbers", Schema: []byte(`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}}}`)}}

func generate(t testing.TB, m lathe.Model, req *lathe.Request) ([]lathe.Delta, *lathe.Finish) {
	t.Helper()
	var deltas []lathe.Delta
	for d, err := range m.Generate(t.Context(), req) {
		if err != nil {
			t.Fatal(err)
		}
		if d.Kind == lathe.DeltaFinish {
			return deltas, d.Finish
		}
		deltas = append(deltas, d)
	}
	t.Fatal("no finish")
	return nil, nil
}

func textOf(deltas []lathe.Delta) string {
	var b strings.Builder
	for _, d := range deltas {
		if d.Kind == lathe.DeltaText {
			b.WriteString(d.Text)
		}
	}
	return b.String()
}

// A leaked call runs, marked as recovered, in a run whose calls are the server's own.
func TestLeakedCallIsRecovered(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"hermes", "tags", "harmony", "mistral", "deepseek-v3.1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := simulated(t, "sim/demo+"+name, "native", &provider.DialectOptions{RecoverLeakedCalls: true}, "")
			s := play(t, m, twoTools, lathe.Settings{}, lathe.Limits{})
			p := all[*event.ToolCallProposed](s)
			if len(p) != 2 || !p[0].Recovered || p[0].Dialect != name || len(all[*event.ToolCallExecuted](s)) != 2 {
				t.Fatalf("proposed %+v, events %q", p, s.kinds())
			}
			if s.result.Reason != lathe.ReasonAnswered || !strings.Contains(s.result.Answer, "42") || strings.Contains(s.shown, "add_numbers\"") {
				t.Errorf("ended %s with %q, shown %q", s.result.Reason, s.result.Answer, s.shown)
			}
			if got := all[*event.RunStarted](s)[0].Dialect; got != "native" {
				t.Errorf("the run started with %s", got)
			}
			if f := all[*event.ModelCallFinished](s)[0].Faults; !slices.Contains(f, lathe.Fault{Kind: "leaked_call", Count: 2}) {
				t.Errorf("faults %v", f)
			}
		})
	}
}

// What names no tool that was offered stays text to the byte, however it comes in pieces, and does
// not keep the next call from being found.
func TestOnlyKnownLeakedCallsAreTaken(t *testing.T) {
	t.Parallel()
	const call = `<tool_call>{"name":"add_numbers","arguments":{"a":7,"b":35}}</tool_call>`
	const other = `<tool_call>{"name":"rm","arguments":{"path":"/"}}</tool_call>`
	cases := map[string]struct {
		text, want string
		calls      int
	}{
		"other":        {"See " + other + " so.", "See " + other + " so.", 0},
		"other, known": {"See " + other + " then " + call + " end.", "See " + other + " then end.", 1},
		"known, other": {call + "and " + other + " end.", "and " + other + " end.", 1},
		"many others":  {strings.Repeat(other+"\n", 80) + "end", strings.Repeat(other+"\n", 80) + "end", 0},
		"broken":       {`<tool_call>{"nam` + "\n</tool_call> x", `<tool_call>{"nam` + "\n</tool_call> x", 0},
		"begun":        {`ends <tool_call>{"name":"rm","arg`, `ends <tool_call>{"name":"rm","arg`, 0},
		"mark":         {"a <tool_call", "a <tool_call", 0},
		"same text":    {call + "7" + other, "7" + other, 1},
		"unicode":      {"é " + other + "ü", "é " + other + "ü", 0},
		"tags":         {`<tool name="rm" args>{}</tool> and <tool name="add_numbers" args>{"a":1}</tool>`, `<tool name="rm" args>{}</tool> and`, 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for piece := 1; piece <= min(len(c.text), 90); piece++ {
				p := &parrot{text: c.text, piece: piece}
				m, err := provider.WithDialect(p, "native", &provider.DialectOptions{RecoverLeakedCalls: true})
				if err != nil {
					t.Fatal(err)
				}
				deltas, f := generate(t, m, &lathe.Request{Messages: []lathe.Message{lathe.User("x")}, Tools: addTool})
				if got := textOf(deltas); got != c.want {
					t.Fatalf("pieces of %d: shown %q, want %q", piece, got, c.want)
				}
				if got := visible.String(&f.Message); got != c.want {
					t.Fatalf("pieces of %d: the message says %q, want %q", piece, got, c.want)
				}
				calls := f.Message.Calls()
				if len(calls) != c.calls || c.calls > 0 && (calls[0].Name != "add_numbers" || !calls[0].Recovered || calls[0].ID == "") {
					t.Fatalf("pieces of %d: calls %+v", piece, calls)
				}
				if len(p.asked.Tools) != 1 {
					t.Fatal("the tools were not sent")
				}
			}
		})
	}
}

// A model that is known to write harmony, on a server that reads it: its text is plain, and is not
// taken for harmony that lost its marks.
func TestPlainTextOfAHarmonyModelIsPlain(t *testing.T) {
	t.Parallel()
	p := &named{parrot{text: "analysis of the final.", piece: 3}}
	m, err := provider.WithDialect(p, "native", &provider.DialectOptions{RecoverLeakedCalls: true})
	if err != nil {
		t.Fatal(err)
	}
	deltas, f := generate(t, m, &lathe.Request{Messages: []lathe.Message{lathe.User("x")}, Tools: addTool})
	if textOf(deltas) != p.text || len(f.Faults) != 0 {
		t.Errorf("shown %q, faults %v", textOf(deltas), f.Faults)
	}
}

type named struct{ parrot }

func (*named) Describe() lathe.ModelInfo { return lathe.ModelInfo{Model: "openai/gpt-oss-20b"} }
