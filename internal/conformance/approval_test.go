package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// An approvalCase is a run over /v1 that asks a person before the calculator is used, and what a client must see
// of it: that the run waits, its own calls alone, and what became of it once the person had answered.
type approvalCase struct {
	name, decision string
	turns          []string
	calls          string // of the client's own tools, in the turn that waits
	finish         string // of each answer over /v1
	answer         string // at the end, for whichever client receives it
}

const goesOn = "expect: 42\ntext: done\n"

var approvalCases = []approvalCase{
	{name: "approved", decision: "approve", turns: []string{"text: let me see\n" + calculates, goesOn}, finish: "stop", answer: "done"},
	{name: "denied", decision: "deny", turns: []string{calculates, "expect: approval_denied\ntext: without it\n"}, finish: "stop", answer: "without it"},
	{name: "both", decision: "approve", turns: []string{calculates + asksWeather, "expect: rain\ntext: done\n"}, calls: "weather", finish: "tool_calls stop", answer: "done"},
}

// approvalServer starts `lathe serve` with a store, a policy that asks, and the scripts of the cases.
func approvalServer(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cfg := "default_model: approved\npolicy: {tools: {calculator: ask}}\nsim:\n  scripts:\n"
	models := "models:\n"
	for _, c := range approvalCases {
		text := "-- turn --\n" + strings.Join(c.turns, "-- turn --\n")
		if err := os.WriteFile(filepath.Join(dir, c.name+".txt"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg += fmt.Sprintf("    %s: %s.txt\n", c.name, c.name)
		models += fmt.Sprintf("  %s: {provider: sim, model: sim/script-%s, max_attempts: 1}\n", c.name, c.name)
	}
	path := filepath.Join(dir, "lathe.yaml")
	if err := os.WriteFile(path, []byte(cfg+models), 0o600); err != nil {
		t.Fatal(err)
	}
	return server(t, "serve", "--config", path, "--addr", "127.0.0.1:0", "--store", "sqlite:"+filepath.Join(dir, "runs.db"))
}

// An approvalOutcome is what a client made of a case.
type approvalOutcome struct {
	Client, Case, Error string
	Calls               []call
	Finish              []string
	Reason              string // of the first answer
	Pending             int    // calls that it says wait
	Open                string // the state of the calculator's call, by the API of runs
	Answer              string
	Last                string // the reason of the last answer over /v1
}

func (o *approvalOutcome) check(t *testing.T, c *approvalCase) {
	t.Helper()
	var names []string
	for _, call := range o.Calls {
		names = append(names, call.Name)
	}
	pending := 1 + len(names)
	if got := strings.Join(names, " "); o.Error != "" || got != c.calls || strings.Join(o.Finish, " ") != c.finish || o.Reason != "awaiting_approval" ||
		o.Pending != pending || o.Open != "awaiting_approval" || o.Answer != c.answer {
		t.Errorf("%s, %s: %+v; want calls %q, finish %q, %d pending, answer %q", o.Client, c.name, o, c.calls, c.finish, pending, c.answer)
	}
}

// A report is the object `lathe` of an answer.
type report struct {
	RunID   string   `json:"run_id"`
	Reason  string   `json:"reason"`
	Pending []string `json:"pending"`
}

// A keptRun is what the API says of a run.
type keptRun struct {
	Status string `json:"status"`
	Answer string `json:"answer"`
	Open   []struct {
		ID     string `json:"tool_call_id"`
		Tool   string `json:"tool"`
		State  string `json:"state"`
		Digest string `json:"args_digest"`
	} `json:"open_calls"`
}

// asks reports whether a person is asked about the calculator.
func (r *keptRun) asks() bool {
	for _, open := range r.Open {
		if open.Tool == "calculator" && open.State == "awaiting_approval" {
			return true
		}
	}
	return false
}

func ask(ctx context.Context, method, url, body string, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %d %s, %v", method, url, resp.StatusCode, b, err)
	}
	if r, ok := into.(*keptRun); ok {
		*r = keptRun{} // what is left out is not as it was
	}
	return json.Unmarshal(b, into)
}

// goApproval is a case by openai-go. The approver answers over the API of runs.
func goApproval(ctx context.Context, base string, c *approvalCase, stream bool) (o *approvalOutcome) {
	o = &approvalOutcome{Client: fmt.Sprintf("openai-go, stream %t", stream), Case: c.name}
	client := openai.NewClient(option.WithAPIKey("k"), option.WithBaseURL(base), option.WithMaxRetries(0))
	p := openai.ChatCompletionNewParams{Model: c.name, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Go on, " + o.Client)},
		Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{Name: "weather",
			Parameters: openai.FunctionParameters{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}}})}}
	fail := func(err error) *approvalOutcome {
		o.Error = err.Error()
		return o
	}
	said, told, err := complete(ctx, &client, p, stream)
	if err != nil {
		return fail(err)
	}
	o.Finish, o.Reason, o.Pending = append(o.Finish, said.FinishReason), told.Reason, len(told.Pending)
	run := strings.TrimSuffix(base, "/v1") + "/api/runs/" + told.RunID
	var kept keptRun
	if err := ask(ctx, http.MethodGet, run, "", &kept); err != nil {
		return fail(err)
	}
	for _, open := range kept.Open {
		if open.Tool != "calculator" {
			continue
		}
		o.Open = open.State
		body := fmt.Sprintf(`{"decision":%q,"digest":%q}`, c.decision, open.Digest)
		if err := ask(ctx, http.MethodPost, run+"/approvals/"+open.ID, body, &keptRun{}); err != nil {
			return fail(err)
		}
	}
	for kept.asks() { // the answer may be taken (202) before the run has looked at it
		if err := ask(ctx, http.MethodGet, run, "", &kept); err != nil {
			return fail(err)
		}
	}
	if len(said.Message.ToolCalls) > 0 { // the run waits for these, too
		p.Messages = append(p.Messages, said.Message.ToParam())
		for _, tc := range said.Message.ToolCalls {
			o.Calls = append(o.Calls, call{tc.Function.Name, tc.Function.Arguments, tc.ID})
			p.Messages = append(p.Messages, openai.ToolMessage("rain", tc.ID))
		}
		if said, told, err = complete(ctx, &client, p, stream); err != nil {
			return fail(err)
		}
		o.Last = told.Reason
		o.Finish, o.Answer = append(o.Finish, said.FinishReason), said.Message.Content
		return o
	}
	for kept.Status != "completed" {
		if err := ask(ctx, http.MethodGet, run, "", &kept); err != nil {
			return fail(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	o.Answer = kept.Answer
	return o
}

// complete makes one request, and returns its choice and what the server says of the run.
func complete(ctx context.Context, client *openai.Client, p openai.ChatCompletionNewParams, stream bool) (openai.ChatCompletionChoice, *report, error) {
	var told report
	if !stream {
		got, err := client.Chat.Completions.New(ctx, p)
		if err != nil {
			return openai.ChatCompletionChoice{}, nil, err
		}
		return got.Choices[0], &told, json.Unmarshal([]byte(got.JSON.ExtraFields["lathe"].Raw()), &told)
	}
	s := client.Chat.Completions.NewStreaming(ctx, p)
	acc := openai.ChatCompletionAccumulator{}
	for s.Next() {
		chunk := s.Current()
		if !acc.AddChunk(chunk) {
			return openai.ChatCompletionChoice{}, nil, fmt.Errorf("the accumulator refused a chunk")
		}
		if raw := chunk.JSON.ExtraFields["lathe"].Raw(); raw != "" {
			if err := json.Unmarshal([]byte(raw), &told); err != nil {
				return openai.ChatCompletionChoice{}, nil, err
			}
		}
	}
	if err := s.Err(); err != nil {
		return openai.ChatCompletionChoice{}, nil, err
	}
	return acc.Choices[0], &told, nil
}

func TestApprovalOpenAIGo(t *testing.T) {
	base := approvalServer(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	for i := range approvalCases {
		for _, stream := range []bool{true, false} {
			c := &approvalCases[i]
			t.Run(fmt.Sprintf("%s/%t", c.name, stream), func(t *testing.T) {
				t.Parallel()
				goApproval(ctx, base, c, stream).check(t, c)
			})
		}
	}
}

func TestApprovalNpmOpenAI(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not installed")
	}
	if _, err := os.Stat("node_modules"); err != nil {
		t.Skip("node_modules is missing: run npm ci in internal/conformance")
	}
	base := approvalServer(t)
	for _, pkg := range []string{"openai-4", "openai-5", "openai-6", "openai-7"} {
		t.Run(pkg, func(t *testing.T) {
			t.Parallel()
			args := []string{"node/approval.mjs", base, pkg}
			for _, c := range approvalCases {
				args = append(args, c.name+"="+c.decision)
			}
			out := node(t, args...)
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			if len(lines) != 2*len(approvalCases) { // as a stream, and whole
				t.Fatalf("%d outcomes, want %d", len(lines), 2*len(approvalCases))
			}
			for i, line := range lines {
				var o approvalOutcome
				if err := json.Unmarshal([]byte(line), &o); err != nil {
					t.Fatal(err)
				}
				o.check(t, &approvalCases[i/2])
			}
		})
	}
}
