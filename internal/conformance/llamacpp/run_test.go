package llamacpp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/preset"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/builtin"
	"github.com/lathe-run/lathe/transform"
)

// A setup is how an entry of a configuration reaches a model.
type setup struct {
	url, model, dialect string
	nineLetterIDs       bool // Mistral's templates refuse other ids
	maxTokens           int  // of an answer; 0: 160, because some marks ramble
}

// An outcome is what a run came to.
type outcome struct {
	*event.Result
	failed   []string // attempts of model calls
	executed []string // tools
}

// words describes the end of a run.
func (o *outcome) words() string {
	return fmt.Sprintf("%s after %d calls, executed %v, failed attempts %v, answer %.80q, %v", o.Reason, o.ToolCalls, o.executed, o.failed, o.Answer, o.Err)
}

// begun is called once the model has written something.
type begun func()

func (s setup) run(t testing.TB, prompt string, then begun) *outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	chat, err := provider.OpenAI(s.model, &provider.Options{BaseURL: s.url, Name: "llamacpp", Retry: provider.Retry{Attempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	defer chat.CloseIdleConnections()
	profile, err := preset.Profile("llamacpp")
	if err != nil {
		t.Fatal(err)
	}
	list := transform.List{Response: profile.ResponseTransforms, ToolCall: profile.ToolCallTransforms}
	if s.nineLetterIDs {
		list.ToolCall = append(list.ToolCall, "tool_call_ids_nine_alphanumeric")
	}
	chain, err := transform.New(list, nil)
	if err != nil {
		t.Fatal(err)
	}
	model, err := provider.WithDialect(transform.Wrap(chat, chain), s.dialect, nil)
	if err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet(builtin.Tools(nil)...)
	if err != nil {
		t.Fatal(err)
	}
	most := cmp.Or(s.maxTokens, 160)
	runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.Default()})
	if err != nil {
		t.Fatal(err)
	}
	l, err := loop.New(model, runner, &loop.Options{
		Limits: lathe.Limits{MaxIterations: 4}, Sampling: lathe.Sampling{MaxTokens: &most}})
	if err != nil {
		t.Fatal(err)
	}
	out := &outcome{}
	for e := range l.Run(ctx, &loop.Input{Messages: []lathe.Message{lathe.User(prompt)}}) {
		switch d := e.Data.(type) {
		case *event.TextDelta, *event.ReasoningDelta, *event.ToolCallDelta:
			if then != nil {
				then()
				then = nil
			}
		case *event.ModelCallFinished:
			if d.Status == "error" {
				out.failed = append(out.failed, strings.TrimSpace(d.ErrorCode+" "+d.ErrorMessage))
			}
		case *event.ToolCallExecuted:
			out.executed = append(out.executed, d.ToolName)
		case *event.RunFinished:
			out.Result = d.Result
		default: // of no interest here
		}
	}
	if out.Result == nil {
		t.Fatalf("%s: the run has no end", prompt)
	}
	return out
}

func asUpstream(err error, up **lathe.UpstreamError) bool { return errors.As(err, up) }
