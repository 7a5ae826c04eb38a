package provider_test

import (
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/provider"
)

// A chorus is a model that says these texts, one in each request, the last one again; in pieces, or whole where piece is 0.
type chorus struct {
	texts []string
	piece int
	n     int
}

func (*chorus) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (c *chorus) Generate(context.Context, *lathe.Request) iter.Seq2[lathe.Delta, error] {
	text := c.texts[min(c.n, len(c.texts)-1)]
	c.n++
	return func(yield func(lathe.Delta, error) bool) {
		for rest := text; rest != "" && c.piece > 0; {
			n := min(c.piece, len(rest))
			if !yield(lathe.Delta{Kind: lathe.DeltaText, Text: rest[:n]}, nil) {
				return
			}
			rest = rest[n:]
		}
		yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: &lathe.Finish{Message: lathe.Assistant(text), Reason: lathe.FinishStop}}, nil)
	}
}

// Of a call in text, whole or broken, nothing is shown on any path of a run that has tools: in its first attempt, in the one without
// tools after it, and in each request that the loop makes for an answer.
func TestMarkupIsHiddenOnEveryPath(t *testing.T) {
	t.Parallel()
	const secret = "zzsecretzz"
	for _, name := range dialect.Names() {
		if name == "auto" {
			continue
		}
		d, _ := dialect.Lookup(name)
		write := func(args string) string {
			call := string(d.AppendCall(nil, lathe.ToolCall{ID: "call00001", Name: "add_numbers", Arguments: args}))
			return strings.TrimPrefix(call, "assistant")
		}
		say := func(text string) string { return text }
		switch name {
		case "harmony":
			say = func(text string) string {
				return "<|channel|>commentary<|message|>" + strings.TrimSpace(text) + "<|end|><|start|>assistant"
			}
		case "functionary-v3.2":
			say = func(text string) string { return "all\n" + text }
		}
		good := write(`{"a":7,"b":35}`)
		hidden := write(`{"a":7,"b":35,"note":"` + secret + `"}`)
		broken := breakOff(write(`{"a":7,"b":"`+secret+`"}`), secret)
		for path, p := range map[string]struct {
			before   []string // the answers before the one that is looked at
			settings lathe.Settings
			limits   lathe.Limits
			format   string
		}{
			"first attempt":       {settings: lathe.Settings{ToolUseMode: lathe.ModeRelaxed}},
			"retry without tools": {before: []string{say("A\n") + broken}, settings: lathe.Settings{OnParseError: lathe.ParseErrorRetryWithout}},
			"empty final":         {before: []string{good, ""}},
			"empty, with tools":   {before: []string{good, ""}, settings: lathe.Settings{FixEmptyFinalKeepTools: true}},
			"limit":               {before: []string{good}, limits: lathe.Limits{MaxIterations: 1}},
			"choice none":         {settings: lathe.Settings{ToolChoice: lathe.ToolChoice{Mode: lathe.ChoiceNone}}},
			"in format":           {before: []string{say("A\n")}, format: `{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object"}}}`},
		} {
			for what, call := range map[string]string{"whole": hidden, "broken": broken} {
				for _, piece := range []int{0, 1, 7, 1 << 20} {
					m, err := provider.WithDialect(&chorus{texts: append(p.before[:len(p.before):len(p.before)], say("Hm\n")+call), piece: piece}, name, nil)
					if err != nil {
						t.Fatal(err)
					}
					if p.limits.MaxIterations == 0 {
						p.limits.MaxIterations = 4
					}
					l, err := loop.New(m, testRunner(t, p.limits), &loop.Options{Settings: p.settings, Limits: p.limits, Sampling: lathe.Sampling{ResponseFormat: []byte(p.format)}})
					if err != nil {
						t.Fatal(err)
					}
					shown := ""
					for e := range l.Run(t.Context(), &loop.Input{Run: lathe.RunInfo{RunID: "run"}, Messages: []lathe.Message{lathe.User("go")}}) {
						switch d := e.Data.(type) {
						case *event.TextDelta:
							shown += d.Text
						case *event.CommentaryDelta:
							shown += d.Text
						case *event.RunFinished:
							shown += "\n" + d.Answer
						}
					}
					if strings.Contains(shown, secret) || strings.Contains(shown, "add_numbers") {
						t.Errorf("%s, %s, %s call in pieces of %d: shown %q", name, path, what, piece, shown)
					}
				}
			}
		}
	}
}
