package loop_test

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
)

// A formatted is a model whose server leaves the response format out of requests with tools if alone is set. It says the turn that
// the history is at.
type formatted struct {
	alone bool
	turns byHistory
	sent  *[]string // what each request had: tools, format, or both
}

func (formatted) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (f formatted) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	var has []string
	left := f.alone && len(req.Tools)+len(req.HostedTools) > 0 && len(req.Sampling.ResponseFormat) > 0
	if len(req.Tools) > 0 {
		has = append(has, "tools")
	}
	if len(req.Sampling.ResponseFormat) > 0 && !left {
		has = append(has, "format")
	}
	if f.sent != nil {
		*f.sent = append(*f.sent, strings.Join(has, "+"))
	}
	return func(yield func(lathe.Delta, error) bool) {
		for d, err := range f.turns.Generate(ctx, req) {
			if d.Finish != nil && left {
				d.Finish.Dropped = []string{"sampling.response_format"}
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

const sumFormat = `{"type":"json_schema","json_schema":{"name":"s","strict":true,"schema":{"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"],"additionalProperties":false}}}`

func inFormat(format string) *loop.Input {
	in := user("x")
	in.Sampling = &lathe.Sampling{ResponseFormat: json.RawMessage(format)}
	return in
}

// A run ends answered only with an answer that has the format that was asked for, whatever its server takes beside tools.
func TestAnswersHaveTheirFormat(t *testing.T) {
	t.Parallel()
	round, said := ask(call("a", "echo", `{}`)), textTurn("It is 42.")
	right, wrong := textTurn(`{"sum":42}`), textTurn(`{"sum":"42"}`)
	refusal := textTurn("")
	refusal.finish.Message.Parts = []lathe.Part{lathe.Refusal{Text: "No."}}
	for name, c := range map[string]struct {
		alone   bool
		format  string
		turns   byHistory
		repairs int // the setting
		sent    string
		reason  lathe.Reason // "": answered
		answer  string
		asks    []string // in the loop's own requests, in order
	}{
		"both": {format: sumFormat, turns: byHistory{round, right}, sent: "tools+format tools+format", answer: `{"sum":42}`},
		"alone": {alone: true, format: sumFormat, turns: byHistory{round, said, right}, sent: "tools tools format", answer: `{"sum":42}`,
			asks: []string{"the text is not a JSON value"}},
		"alone, right by itself": {alone: true, format: sumFormat, turns: byHistory{round, right}, sent: "tools tools", answer: `{"sum":42}`},
		"alone, no call":         {alone: true, format: sumFormat, turns: byHistory{said, right}, sent: "tools format", answer: `{"sum":42}`, asks: []string{"JSON"}},
		"alone, any object":      {alone: true, format: `{"type":"json_object"}`, turns: byHistory{round, said, wrong}, sent: "tools tools format", answer: `{"sum":"42"}`, asks: []string{"JSON"}},
		"alone, never an object": {alone: true, format: `{"type":"json_object"}`, turns: byHistory{round, said}, sent: "tools tools format", answer: "It is 42.", asks: []string{"JSON"}},
		"alone, and a repair":    {alone: true, format: sumFormat, turns: byHistory{round, said, wrong, right}, sent: "tools tools format format", answer: `{"sum":42}`, asks: []string{"JSON", "/sum must be integer, not string"}},
		"alone, never right":     {alone: true, format: sumFormat, turns: byHistory{round, said, wrong}, sent: "tools tools format format", reason: lathe.ReasonInvalidAnswer, answer: `{"sum":"42"}`, asks: []string{"JSON", "/sum"}},
		"a repair":               {format: sumFormat, turns: byHistory{round, wrong, right}, sent: "tools+format tools+format tools+format", answer: `{"sum":42}`, asks: []string{"/sum must be integer, not string"}},
		"a call in a repair":     {format: sumFormat, turns: byHistory{wrong, round, right}, sent: "tools+format tools+format tools+format", answer: `{"sum":42}`, asks: []string{"/sum"}},
		"two repairs":            {format: sumFormat, turns: byHistory{said, wrong, right}, repairs: 2, sent: "tools+format tools+format tools+format", answer: `{"sum":42}`, asks: []string{"JSON", "/sum"}},
		"no repairs":             {format: sumFormat, turns: byHistory{wrong, right}, repairs: -1, sent: "tools+format", reason: lathe.ReasonInvalidAnswer, answer: `{"sum":"42"}`},
		"never right":            {format: sumFormat, turns: byHistory{wrong}, sent: "tools+format tools+format", reason: lathe.ReasonInvalidAnswer, answer: `{"sum":"42"}`, asks: []string{"/sum"}},
		"not strict":             {format: strings.Replace(sumFormat, "true", "false", 1), turns: byHistory{wrong}, sent: "tools+format", answer: `{"sum":"42"}`},
		"strict by itself":       {format: strings.Replace(sumFormat, `"strict":true,`, "", 1), turns: byHistory{wrong, right}, sent: "tools+format tools+format", answer: `{"sum":42}`, asks: []string{"/sum"}},
		"a schema of no draft":   {format: strings.Replace(sumFormat, `{"type":"object"`, `{"$schema":"x:y","type":"object"`, 1), turns: byHistory{said}, sent: "tools+format", answer: "It is 42."},
		"plain text":             {format: `{"type":"text"}`, turns: byHistory{said}, sent: "tools+format", answer: "It is 42."},
		"a format of its server": {format: `{"type":"grammar"}`, turns: byHistory{said}, sent: "tools+format", answer: "It is 42."},
		"a refusal":              {format: sumFormat, turns: byHistory{refusal}, sent: "tools+format", answer: "No."},
		"cut off":                {format: sumFormat, turns: byHistory{textTurn(`{"su`).reason(lathe.FinishLength)}, sent: "tools+format", reason: lathe.ReasonLength, answer: `{"su`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sent []string
			l := newLoop(t, formatted{c.alone, c.turns, &sent}, &loop.Options{Settings: lathe.Settings{MaxAnswerRepairs: c.repairs}}, echo("echo"))
			kept := &log{}
			res := kept.run(t, l, inFormat(c.format), 1000)
			want := c.reason
			if want == "" {
				want = lathe.ReasonAnswered
			}
			if res.Reason != want || res.Answer != c.answer || strings.Join(sent, " ") != c.sent {
				t.Errorf("%s with %q; sent %q, want %q", res.Reason, res.Answer, sent, c.sent)
			}
			if want == lathe.ReasonInvalidAnswer && (res.Err == nil || strings.Contains(res.Err.Error(), "42") || lathe.CodeOf(res.Err) != "invalid_answer") {
				t.Errorf("the error is %v", res.Err)
			}
			var asks []string
			for _, m := range res.History {
				if m.Synthetic {
					asks = append(asks, m.Text())
				}
			}
			if len(asks) != len(c.asks) {
				t.Fatalf("the loop asked %q", asks)
			}
			for i := range asks {
				if !strings.Contains(asks[i], c.asks[i]) {
					t.Errorf("the loop asked %q, without %q", asks[i], c.asks[i])
				}
			}
			if diff := cmp.Diff(shape(res.History), shape(kept.fold(t).Messages)); diff != "" {
				t.Errorf("the fold of the events differs from the history:\n%s", diff)
			}
			for _, m := range loop.SessionHistory(res.History, nil) {
				if m.Synthetic || c.reason == "" && m.Role == lathe.RoleAssistant && len(m.Calls()) == 0 && m.Text() != c.answer && m.Text() != "" {
					t.Errorf("a session keeps %+v", m)
				}
			}
		})
	}
}

// A run that asks for an answer in its format comes to the same end if its process stops after any event.
func TestFormattedRunsGoOnFromEachEvent(t *testing.T) {
	t.Parallel()
	turns := byHistory{ask(call("a", "echo", `{}`)), textTurn("It is 42."), textTurn(`{"sum":"42"}`), textTurn(`{"sum":42}`)}
	for _, alone := range []bool{true, false} {
		newOne := func() *loop.Loop {
			return newLoop(t, formatted{alone: alone, turns: turns}, &loop.Options{Settings: lathe.Settings{MaxAnswerRepairs: 1}}, constant("echo"))
		}
		whole := &log{}
		in := func() *loop.Input {
			in := inFormat(sumFormat)
			in.Park = true
			return in
		}
		want := whole.run(t, newOne(), in(), 1000)
		for n := 1; n < len(whole.lines); n++ {
			l := &log{}
			if l.run(t, newOne(), in(), n) != nil {
				t.Fatal("the run has ended")
			}
			var res *event.Result
			if res = l.run(t, newOne(), &loop.Input{Resume: l.fold(t)}, 1000); res == nil {
				t.Fatalf("alone %v, from event %d: no end", alone, n)
			}
			if res.Reason != want.Reason || res.Answer != want.Answer {
				t.Errorf("alone %v, from event %d: %s with %q", alone, n, res.Reason, res.Answer)
			}
			if got := shape(l.fold(t).Messages); got != shape(res.History) {
				t.Errorf("alone %v, from event %d: the events say\n%s\nthe history is\n%s", alone, n, got, shape(res.History))
			}
			roles := res.History[1:]
			if slices.ContainsFunc(roles, func(m lathe.Message) bool { return m.Role == lathe.RoleUser && !m.Synthetic }) {
				t.Errorf("alone %v, from event %d: %s", alone, n, shape(res.History))
			}
		}
	}
}

// A last turn without calls on Messages keeps the definitions of the tools, to which thinking in the history is bound, and allows no call.
func TestTheLastTurnKeepsTheToolsOfMessages(t *testing.T) {
	t.Parallel()
	for wire, want := range map[lathe.Wire]int{lathe.WireMessages: 1, lathe.WireOpenAIChat: 0} {
		m := &script{info: lathe.ModelInfo{Wire: wire}, turns: []turn{ask(call("a", "echo", `{}`)), textTurn(""), ask(call("b", "echo", `{}`))}}
		res, events := collect(t, t.Context(), newLoop(t, m, nil, echo("echo")), user("x"))
		checkRun(t, res, events)
		last := m.requests()[2]
		if len(last.tools) != want || want > 0 && last.choice.Mode != lathe.ChoiceNone || res.ToolCalls != 1 || res.Reason != lathe.ReasonEmptyAnswer {
			t.Errorf("%s: tools %q, choice %+v, %d calls, %s", wire, last.tools, last.choice, res.ToolCalls, res.Reason)
		}
	}
}
