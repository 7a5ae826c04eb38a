package llamacpp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/schema"
	"github.com/lathe-run/lathe/provider"
)

// grammarTools have arguments of every kind, with texts that end: a random model would write endless ones.
var grammarTools = []*lathe.ToolSpec{
	{Name: "add", Schema: []byte(`{"type":"object","properties":{"a":{"type":"integer","minimum":-7,"maximum":1205},"b":{"type":"number"}},"required":["a"],"additionalProperties":false}`)},
	{Name: "save_note", Schema: []byte(`{"type":"object","properties":{"title":{"type":"string","minLength":1,"maxLength":12},"kind":{"enum":["todo","done"]},"tags":{"type":"array","items":{"type":"string","maxLength":6},"minItems":1,"maxItems":3},"pinned":{"type":"boolean"},"due":{"type":["null","integer"]}},"required":["title","tags"],"additionalProperties":false}`)},
	{Name: "ping", Schema: []byte(`{"type":"object","properties":{},"additionalProperties":false}`)},
}

// A model of random weights writes a call with valid arguments each time, if the server takes the grammar of its dialect; without, it
// hardly ever does. `-full` asks for 1,000 calls.
func TestRandomModelWritesValidCalls(t *testing.T) {
	for _, m := range []struct{ model, dialect string }{{"noise-qwen3", "hermes"}, {"noise-glm", "glm"}, {"noise-gptoss", "harmony"}, {"noise-qwen3", "qwen3-coder"}} {
		t.Run(m.model+"/"+m.dialect, func(t *testing.T) {
			s := start(t, m.model, append([]string{"-c", "8192"}, raw...)...)
			for _, constrain := range []string{"llamacpp", ""} {
				var asked, good, cut atomic.Int32
				list := times(12, 250)
				if constrain == "" {
					list = times(4, 20)
				}
				each(list, func(i string) {
					call, ok := s.call(t, m.model, m.dialect, constrain, i)
					asked.Add(1)
					switch {
					case ok:
						good.Add(1)
					case constrain != "" && call.Incomplete:
						cut.Add(1)
					case constrain != "":
						t.Errorf("seed %s: %s %+v", i, m.dialect, call)
					}
				})
				t.Logf("%q: %d of %d are valid calls, %d reached the token limit", constrain, good.Load(), asked.Load(), cut.Load())
				if constrain == "" && good.Load() == asked.Load() || constrain != "" && good.Load() == 0 {
					t.Errorf("the grammar changes nothing: %q, %d of %d", constrain, good.Load(), asked.Load())
				}
			}
		})
	}
}

// call asks for one call, with a seed. ok says that the answer is a call of one of the tools with valid arguments and nothing else.
func (s *server) call(t *testing.T, name, dialectName, constrain, seed string) (call lathe.ToolCall, ok bool) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	chat, err := provider.OpenAI(name, &provider.Options{BaseURL: s.url, Name: "llamacpp", Retry: provider.Retry{Attempts: 1}, Timeouts: provider.Timeouts{Client: 5 * time.Minute}})
	if err != nil {
		t.Error(err)
		return call, false
	}
	defer chat.CloseIdleConnections()
	model, err := provider.WithDialect(chat, dialectName, &provider.DialectOptions{Constrain: constrain})
	if err != nil {
		t.Error(err)
		return call, false
	}
	no, most, hot := false, 600, 1.0
	req := &lathe.Request{Model: name, Messages: []lathe.Message{lathe.User("go")}, Tools: grammarTools, ToolChoice: lathe.ToolChoice{Mode: lathe.ChoiceRequired}, ParallelToolCalls: &no,
		Sampling:  lathe.Sampling{MaxTokens: &most, Temperature: &hot, Stop: []string{"<|endoftext|>", "<|im_end|>"}}, // --special shows the end
		Overrides: []lathe.Member{{Name: "seed", Value: json.RawMessage(seed)}}}
	if constrain == "" {
		*req.Sampling.MaxTokens = 120
	}
	var finish *lathe.Finish
	for d, err := range model.Generate(ctx, req) {
		if err != nil {
			t.Errorf("seed %s: %v", seed, err)
			return call, false
		}
		if d.Finish != nil {
			finish = d.Finish
		}
	}
	if finish == nil {
		return call, false
	}
	calls := finish.Message.Calls()
	if len(calls) == 0 && finish.Reason == lathe.FinishLength {
		return lathe.ToolCall{Incomplete: true}, false // it was still thinking
	}
	if len(calls) != 1 {
		return lathe.ToolCall{Arguments: fmt.Sprintf("%d calls in %.300q", len(calls), fmt.Sprint(finish.Message.Parts))}, false
	}
	call = calls[0]
	for _, tool := range grammarTools {
		if tool.Name != call.Name || call.ParseError != "" || call.Incomplete || !json.Valid([]byte(call.Arguments)) {
			continue
		}
		compiled, err := schema.Compile(tool.Schema)
		if err != nil {
			t.Error(err)
			return call, false
		}
		return call, len(compiled.ValidateArguments([]byte(call.Arguments))) == 0 && strings.TrimSpace(finish.Message.Text()) == ""
	}
	return call, false
}
