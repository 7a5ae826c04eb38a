package llamacpp

import (
	"context"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/agent"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/tool/builtin"
)

// typed executes a run whose answer is a T, on the real server. The grammar of the server turns the model off its script, which may then write
// blanks without end: max_tokens ends the run with the reason length, and it is executed again with another seed.
func typed[T any](t *testing.T, s *server, tools []lathe.Tool, prompt string) (value T, res *event.Result, err error) {
	t.Helper()
	chat, err := provider.OpenAI("qwen3", &provider.Options{BaseURL: s.url, Name: "llamacpp", Server: provider.Server{Kind: "llamacpp"}, Retry: provider.Retry{Attempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	defer chat.CloseIdleConnections()
	o := &agent.Options{Tools: tools}
	most := 120
	for seed := range int64(8) {
		o.Loop.Sampling = lathe.Sampling{MaxTokens: &most, Seed: &seed}
		a, err := agent.New(chat, o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		value, res, err = agent.RunAs[T](ctx, a, lathe.User(prompt))
		a.Close(ctx)
		cancel()
		if res == nil || res.Reason != lathe.ReasonLength {
			return value, res, err
		}
	}
	t.Fatalf("each of 8 answers reached max_tokens: %v", err)
	return value, res, err
}

type size struct {
	Size string `json:"size" jsonschema:"enum=small,enum=large"`
}

// The grammar that the server makes of the schema knows no multipleOf, so that the server's own answer does not match.
type odd struct {
	N int `json:"n" jsonschema:"minimum=8,maximum=9,multipleOf=7"`
}

// An answer of a type arrives, with tools and without. One that does not match, whatever the server promises, is requested again, and
// never accepted. This server lets a model make no calls if the request has a JSON schema: its kind says that the schema is sent alone,
// after the calls.
func TestAnswerOfAType(t *testing.T) {
	s := start(t, "qwen3")
	for name, tools := range map[string][]lathe.Tool{"without tools": nil, "with tools": builtin.Tools(nil)} {
		t.Run(name, func(t *testing.T) {
			value, res, err := typed[size](t, s, tools, "go")
			t.Logf("%+v after %d turns, %d calls", value, len(res.Trace), res.ToolCalls)
			if tools != nil && res.ToolCalls == 0 {
				t.Error("no tool was called")
			}
			if err != nil || value.Size != "small" && value.Size != "large" {
				t.Fatalf("%+v, %v, answer %q", value, err, res.Answer)
			}
		})
		t.Run(name+", no match", func(t *testing.T) {
			_, res, err := typed[odd](t, s, tools, "go")
			t.Logf("%v after %d turns, %d calls: %q", err, len(res.Trace), res.ToolCalls, res.Answer)
			repairs := 0
			for _, m := range res.History {
				if m.Synthetic {
					repairs++
				}
			}
			if res.Reason != lathe.ReasonInvalidAnswer || lathe.CodeOf(err) != "invalid_answer" || repairs == 0 {
				t.Errorf("%s after %d repairs, %v", res.Reason, repairs, err)
			}
		})
	}
}
