package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// A gatewayCase is a script of the model behind `lathe serve`, and what a client with one tool of its
// own, weather, must see of it. Calls to the calculator run on the server, unseen.
type gatewayCase struct {
	name    string
	turns   []string
	calls   string // those the client was handed
	finish  string
	content string // of the last answer
	fails   string // a word of the error
}

const calculates = `call: calculator {"expression":"6 * 7"}` + "\n"
const asksWeather = `call: weather {"city":"Oslo"}` + "\n"

var gatewayCases = []gatewayCase{
	{name: "rounds0", turns: []string{"text: hello\n"}, finish: "stop", content: "hello"},
	{name: "rounds1", turns: []string{calculates, "expect: 42\ntext: done\n"}, finish: "stop", content: "done"},
	{name: "rounds2", turns: []string{"text: one\n" + calculates, calculates, "expect: 42\ntext: done\n"}, finish: "stop", content: "one\n\ndone"},
	{name: "rounds5", turns: []string{calculates, "text: a\n" + calculates, `call: calculator {"expression":"1 + 1"}` + "\n",
		`call: calculator {"expression":"2 + 1"}` + "\n", "text: b\n" + calculates, "text: done\n"}, finish: "stop", content: "a\n\nb\n\ndone"},
	{name: "parallel", turns: []string{calculates + "call: get_current_time {}\n" + calculates, "text: done\n"}, finish: "stop", content: "done"},
	{name: "client", turns: []string{asksWeather, "expect: rain\ntext: done\n"}, calls: "weather", finish: "tool_calls stop", content: "done"},
	{name: "mixed", turns: []string{calculates, "text: both\n" + calculates + asksWeather + calculates, "expect: 42\ntext: done\n"},
		calls: "weather", finish: "tool_calls stop", content: "done"},
	{name: "mixed2", turns: []string{asksWeather + calculates, calculates, calculates + asksWeather, "expect: rain\ntext: done\n"},
		calls: "weather weather", finish: "tool_calls tool_calls stop", content: "done"},
	{name: "fails", turns: []string{"error: 400 too long\n"}, fails: "400"},
	{name: "breaks", turns: []string{"text: hello there\ncut:\n"}, fails: "broke off"},
	{name: "failslater", turns: []string{"text: well\n" + calculates, "error: 500 sorry\n"}, fails: "the model server failed"},
}

// gatewayServer starts `lathe serve` with the scripts of the cases.
func gatewayServer(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cfg := "default_model: rounds0\ntool_calling: {max_repeated_calls: 100}\nsim:\n  scripts:\n"
	models := "models:\n"
	for _, c := range gatewayCases {
		var b strings.Builder
		for _, turn := range c.turns {
			b.WriteString("-- turn --\n" + turn)
		}
		if err := os.WriteFile(filepath.Join(dir, c.name+".txt"), []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg += fmt.Sprintf("    %s: %s.txt\n", c.name, c.name)
		models += fmt.Sprintf("  %s: {provider: sim, model: sim/script-%s, max_attempts: 1}\n", c.name, c.name)
	}
	path := filepath.Join(dir, "lathe.yaml")
	if err := os.WriteFile(path, []byte(cfg+models), 0o600); err != nil {
		t.Fatal(err)
	}
	return server(t, "serve", "--config", path, "--addr", "127.0.0.1:0")
}

func (o *outcome) checkGateway(t *testing.T, c *gatewayCase) {
	t.Helper()
	if c.fails != "" {
		if !strings.Contains(strings.ToLower(o.Error), c.fails) {
			t.Errorf("%s, %s: error %q does not hold %q", o.Client, c.name, o.Error, c.fails)
		}
		return
	}
	var names []string
	ids := map[string]bool{}
	for _, call := range o.Calls {
		names = append(names, call.Name)
		if !json.Valid([]byte(call.Arguments)) || call.ID == "" || ids[call.ID] {
			t.Errorf("%s, %s: call %+v has no valid arguments or no id of its own", o.Client, c.name, call)
		}
		ids[call.ID] = true
	}
	if got := strings.Join(names, " "); o.Error != "" || got != c.calls || o.Content != c.content || strings.Join(o.Finish, " ") != c.finish || o.Usage == 0 {
		t.Errorf("%s, %s: error %q, calls %q, content %q, finish %v, usage %d; want calls %q, content %q, finish %s", o.Client, c.name,
			o.Error, got, o.Content, o.Finish, o.Usage, c.calls, c.content, c.finish)
	}
}

func TestGatewayOpenAIGo(t *testing.T) {
	base := gatewayServer(t)
	for i := range gatewayCases {
		c := &gatewayCases[i]
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			goGateway(t.Context(), base, c.name).checkGateway(t, c)
		})
	}
}

func goGateway(ctx context.Context, base, model string) *outcome {
	o := &outcome{Client: "openai-go", Model: model}
	client := openai.NewClient(option.WithAPIKey("k"), option.WithBaseURL(base), option.WithMaxRetries(0))
	p := openai.ChatCompletionNewParams{Model: model, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Go on.")},
		Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{Name: "weather",
			Parameters: openai.FunctionParameters{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}}})},
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}}
	for range 4 {
		s := client.Chat.Completions.NewStreaming(ctx, p)
		acc := openai.ChatCompletionAccumulator{}
		for s.Next() {
			if !acc.AddChunk(s.Current()) {
				o.Error = "the accumulator refused a chunk"
				return o
			}
		}
		if err := s.Err(); err != nil {
			o.Error = err.Error()
			return o
		}
		ch := acc.Choices[0]
		o.Finish = append(o.Finish, ch.FinishReason)
		o.Usage += acc.Usage.TotalTokens
		if len(ch.Message.ToolCalls) == 0 {
			o.Content = ch.Message.Content
			return o
		}
		p.Messages = append(p.Messages, ch.Message.ToParam())
		for _, tc := range ch.Message.ToolCalls {
			o.Calls = append(o.Calls, call{tc.Function.Name, tc.Function.Arguments, tc.ID})
			p.Messages = append(p.Messages, openai.ToolMessage("rain", tc.ID))
		}
	}
	o.Error = "no answer after four turns"
	return o
}

func TestGatewayNpmOpenAI(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not installed")
	}
	if _, err := os.Stat("node_modules"); err != nil {
		t.Skip("node_modules is missing: run npm ci in internal/conformance")
	}
	base := gatewayServer(t)
	for _, pkg := range []string{"openai-4", "openai-5", "openai-6", "openai-7"} {
		t.Run(pkg, func(t *testing.T) {
			t.Parallel()
			args := []string{"node/gateway.mjs", base, pkg}
			for _, c := range gatewayCases {
				args = append(args, c.name)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, "node", args...)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("node: %v\n%s", err, stderr.String())
			}
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			if len(lines) != len(gatewayCases) {
				t.Fatalf("%d outcomes, want %d", len(lines), len(gatewayCases))
			}
			for i, line := range lines {
				var o outcome
				if err := json.Unmarshal([]byte(line), &o); err != nil {
					t.Fatal(err)
				}
				o.checkGateway(t, &gatewayCases[i])
			}
		})
	}
}

// Without tools of its own the gateway passes the calls of the client's tools on, and mends what is
// damaged on the way: official clients read what they could not read of the model server itself.
func TestGatewayMendsTheWire(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lathe.yaml")
	if err := os.WriteFile(path, []byte("tools: {builtin: []}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	base := server(t, "serve", "--config", path, "--addr", "127.0.0.1:0")
	for _, e := range everyClient {
		switch e.model {
		case "sim/fault-type-missing":
			e.fails = nil
		case "sim/fault-status-401":
			e.fails = map[string]string{"*": "400"} // it is the operator's key, not the client's
		}
		t.Run(e.model, func(t *testing.T) {
			t.Parallel()
			runGo(t.Context(), base, e.model).check(t, e)
		})
	}
}
