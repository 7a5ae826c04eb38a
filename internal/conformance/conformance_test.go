// Package conformance points official clients at Lathe. It is a module of its own, so that none of
// them is a dependency of Lathe.
package conformance

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lathe-run/lathe/internal/conformance/agents"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// expectation says what an official client makes of a model of the simulated server. The faults are
// damage of the wire: where a client cannot read it, that is noted, and the server is not to blame.
type expectation struct {
	model string
	// fails maps a client to a word of the error that it raises; "*" stands for every client.
	fails map[string]string
}

var everyClient = []expectation{
	{model: "sim/demo"},
	{model: "sim/slow"},
	{model: "sim/fault-one-chunk"},
	{model: "sim/fault-two-in-one-chunk"},
	{model: "sim/fault-no-done"},
	{model: "sim/fault-comments"},
	{model: "sim/fault-crlf"},
	{model: "sim/fault-multi-line-data"},
	{model: "sim/fault-long-line"},
	// npm openai refuses a call without its type; openai-go takes it and sends the empty type back.
	{model: "sim/fault-type-missing", fails: map[string]string{"openai-4": "type", "openai-5": "type", "openai-6": "type", "openai-7": "type", "openai-go": "400"}},
	{model: "sim/fault-reasoning-content"},
	{model: "sim/fault-status-429"},
	{model: "sim/fault-status-500"},
	{model: "sim/fault-error-in-band", fails: map[string]string{"*": "error"}},
	{model: "sim/fault-status-401", fails: map[string]string{"*": "401"}},
	{model: "sim/fault-cut-mid-argument", fails: map[string]string{"*": ""}},
}

const prompt = "What is 7 + 35, and what time is it in Tokyo?"

// simServer starts `lathe sim serve`.
func simServer(t *testing.T) string {
	t.Helper()
	return server(t, "sim", "serve", "--addr", "127.0.0.1:0")
}

// lathe builds the command once for all tests, and returns its path.
var lathe = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "lathe-conformance-")
	if err != nil {
		return "", err
	}
	buildDir = dir
	bin := filepath.Join(dir, "lathe")
	return bin, agents.Build(bin, "./cmd/lathe")
})

// buildDir is the folder of the command; "" until it is built.
var buildDir string

// TestMain removes the command that was built.
func TestMain(m *testing.M) {
	code := m.Run()
	if buildDir != "" {
		_ = os.RemoveAll(buildDir) // a temporary folder
	}
	os.Exit(code)
}

// server starts the command with args; it is stopped by its process id. It returns the
// address that it names.
func server(t *testing.T, args ...string) string {
	t.Helper()
	bin, err := lathe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin, args...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
	})
	url := make(chan string, 1)
	go func() {
		re := regexp.MustCompile(`http://\S+/v1`)
		sc := bufio.NewScanner(stderr)
		for sc.Scan() {
			if u := re.FindString(sc.Text()); u != "" {
				url <- u
				break
			}
		}
		io.Copy(io.Discard, stderr)
	}()
	select {
	case u := <-url:
		return u
	case <-time.After(30 * time.Second):
		t.Fatalf("lathe %v did not say where it listens", args)
		return ""
	}
}

type outcome struct {
	Client  string `json:"client"`
	Model   string `json:"model"`
	Calls   []call `json:"calls"`
	Content string `json:"content"`
	Done    []string
	Finish  []string `json:"finish"`
	Usage   int64    `json:"usage"`
	Error   string   `json:"error"`
}

type call struct{ Name, Arguments, ID string }

func (o *outcome) check(t *testing.T, e expectation) {
	t.Helper()
	word, fails := e.fails[o.Client]
	if !fails {
		word, fails = e.fails["*"]
	}
	if fails {
		if o.Error == "" {
			t.Errorf("%s, %s: no error, want one with %q (content %q)", o.Client, o.Model, word, o.Content)
		} else if !strings.Contains(strings.ToLower(o.Error), strings.ToLower(word)) {
			t.Errorf("%s, %s: error %q does not hold %q", o.Client, o.Model, o.Error, word)
		}
		return
	}
	if o.Error != "" {
		t.Errorf("%s, %s: %s", o.Client, o.Model, o.Error)
		return
	}
	var names []string
	for _, c := range o.Calls {
		names = append(names, c.Name)
		if !json.Valid([]byte(c.Arguments)) || c.ID == "" {
			t.Errorf("%s, %s: call %+v has no valid arguments or no id", o.Client, o.Model, c)
		}
	}
	if got := strings.Join(names, " "); got != "calculator get_current_time" {
		t.Errorf("%s, %s: calls %q, want calculator and get_current_time", o.Client, o.Model, got)
	}
	if !strings.Contains(o.Content, "42") || !strings.Contains(o.Content, "03:04") {
		t.Errorf("%s, %s: answer %q does not hold both results", o.Client, o.Model, o.Content)
	}
	if o.Usage == 0 {
		t.Errorf("%s, %s: no usage", o.Client, o.Model)
	}
	if strings.Contains(e.model, "demo") {
		if got := strings.Join(o.Finish, " "); got != "tool_calls stop" {
			t.Errorf("%s, %s: finish reasons %q", o.Client, o.Model, got)
		}
	}
}

func TestNpmOpenAI(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not installed")
	}
	if _, err := os.Stat("node_modules"); err != nil {
		t.Skip("node_modules is missing: run npm ci in internal/conformance")
	}
	base := simServer(t)
	for _, pkg := range []string{"openai-4", "openai-5", "openai-6", "openai-7"} {
		t.Run(pkg, func(t *testing.T) {
			t.Parallel()
			args := []string{"node/run.mjs", base, pkg}
			for _, e := range everyClient {
				args = append(args, e.model)
			}
			out := node(t, args...)
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			if len(lines) != len(everyClient) {
				t.Fatalf("%d outcomes, want %d", len(lines), len(everyClient))
			}
			for i, line := range lines {
				var o outcome
				if err := json.Unmarshal([]byte(line), &o); err != nil {
					t.Fatal(err)
				}
				o.check(t, everyClient[i])
			}
		})
	}
}

func TestOpenAIGo(t *testing.T) {
	base := simServer(t)
	var wg sync.WaitGroup
	for _, e := range everyClient {
		wg.Go(func() {
			o := runGo(t.Context(), base, e.model)
			o.check(t, e)
		})
	}
	wg.Wait()
}

// runGo is a whole run by openai-go's stream and accumulator.
func runGo(ctx context.Context, base, model string) *outcome {
	o := &outcome{Client: "openai-go", Model: model}
	c := openai.NewClient(option.WithAPIKey("k"), option.WithBaseURL(base), option.WithMaxRetries(2))
	function := func(name, param string) openai.ChatCompletionToolUnionParam {
		return openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{Name: name,
			Parameters: openai.FunctionParameters{"type": "object", "properties": map[string]any{param: map[string]any{"type": "string"}}}})
	}
	p := openai.ChatCompletionNewParams{Model: model, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(prompt)},
		Tools:         []openai.ChatCompletionToolUnionParam{function("calculator", "expression"), function("get_current_time", "zone")},
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}}
	results := map[string]string{"calculator": `{"result":42}`, "get_current_time": `{"currentTime":"2026-01-02T03:04:05+09:00"}`}
	for range 4 {
		s := c.Chat.Completions.NewStreaming(ctx, p)
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
		if len(acc.Choices) == 0 {
			o.Error = "no choices"
			return o
		}
		ch := acc.Choices[0]
		if ch.FinishReason == "" {
			o.Error = fmt.Sprintf("the stream ended without a finish reason after %d bytes", len(ch.Message.Content))
			return o
		}
		o.Finish = append(o.Finish, ch.FinishReason)
		o.Usage += acc.Usage.TotalTokens
		if len(ch.Message.ToolCalls) == 0 {
			o.Content = ch.Message.Content
			return o
		}
		p.Messages = append(p.Messages, ch.Message.ToParam())
		for _, tc := range ch.Message.ToolCalls {
			o.Calls = append(o.Calls, call{tc.Function.Name, tc.Function.Arguments, tc.ID})
			p.Messages = append(p.Messages, openai.ToolMessage(results[tc.Function.Name], tc.ID))
		}
	}
	o.Error = "no answer after four turns"
	return o
}

// node returns what a program of node/ writes, which has three minutes. It fails the test if the program does.
func node(t *testing.T, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("node: %v\n%s\n%s", err, out, stderr.String())
	}
	return out
}
