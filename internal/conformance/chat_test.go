package conformance

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// chatServer starts `lathe serve` with a store and the configuration; it is stopped by its process id.
func chatServer(t *testing.T, bin, config string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "lathe.yaml"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin, "serve", "--addr", "127.0.0.1:0", "--store", "sqlite:runs.db", "--config", "lathe.yaml")
	cmd.Dir = dir
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
		re := regexp.MustCompile(`http://127\.0\.0\.1:\d+`)
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
		t.Fatal("lathe serve did not say where it listens")
		return ""
	}
}

// A chatOutcome is what a chat client made of one conversation.
type chatOutcome struct {
	Client, Case, Text, Status string
	Errors, States             []string
	Open, Messages             int
	Metadata                   struct{ RunID, Reason string }
}

// A chatCase says what every client of a kind must have made of a case.
type chatCase struct {
	states string // of the calls, joined; a prefix of each is enough
	text   []string
	err    string // a word of the one error; empty: none
	status string
}

func (c *chatCase) check(t *testing.T, o *chatOutcome) {
	t.Helper()
	name := o.Client + ", " + o.Case
	if c.err == "" && len(o.Errors) > 0 || c.err != "" && (len(o.Errors) != 1 || !strings.Contains(o.Errors[0], c.err)) {
		t.Errorf("%s: errors %q, want one with %q", name, o.Errors, c.err)
	}
	if got := strings.Join(o.States, " "); got != c.states {
		t.Errorf("%s: calls %q, want %q", name, got, c.states)
	}
	for _, want := range c.text {
		if !strings.Contains(o.Text, want) {
			t.Errorf("%s: no %q in %q", name, want, o.Text)
		}
	}
	if c.status != "" && c.status != o.Status {
		t.Errorf("%s: it ended %q, want %q", name, o.Status, c.status)
	}
	if o.Open > 0 {
		t.Errorf("%s: %d texts are still open", name, o.Open)
	}
}

func runNode(t *testing.T, args ...string) []chatOutcome {
	t.Helper()
	out := node(t, args...)
	var all []chatOutcome
	for line := range strings.Lines(string(out)) {
		var o chatOutcome
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		all = append(all, o)
	}
	return all
}

// chatRig is two servers: one that allows what only reads, and one that asks before the calculator is used.
func chatRig(t *testing.T) (base, asking string) {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not installed")
	}
	if _, err := os.Stat(filepath.Join("node_modules", "ai-7")); err != nil {
		t.Skip("node_modules is missing: run npm ci in internal/conformance")
	}
	bin, err := lathe()
	if err != nil {
		t.Fatal(err)
	}
	return chatServer(t, bin, "{}\n"), chatServer(t, bin, "policy:\n  tools:\n    calculator: ask\n")
}

// The chat of npm `ai` holds whole conversations: several rounds, several turns, its own tools, approvals
// given and refused, failures before the stream begins and within it.
func TestNpmAI(t *testing.T) {
	base, asking := chatRig(t)
	want := map[string]chatCase{
		"rounds":        {states: "calculator:output-available get_current_time:output-available", text: []string{"42", "Tokyo"}},
		"no tool":       {text: []string{"sim/demo"}},
		"two turns":     {states: "calculator:output-available", text: []string{"2 * 3 = 6"}},
		"own tool":      {states: "where_am_i:output-available calculator:output-available", text: []string{"Tokyo", "42"}},
		"status":        {err: `"status":400`},
		"cut":           {states: "calculator:output-available get_current_time:output-available", text: []string{"42"}, err: "provider_unavailable"},
		"unknown model": {err: `"code":"model_not_found"`},
		"approved":      {states: "calculator:output-available get_current_time:output-available", text: []string{"42", "Tokyo"}},
		"denied":        {states: "calculator:output-denied get_current_time:output-available", text: []string{"not approved", "Tokyo"}},
	}
	for _, pkg := range []string{"ai-5-0-0", "ai-5", "ai-6-0-0", "ai-6", "ai-7"} {
		t.Run(pkg, func(t *testing.T) {
			t.Parallel()
			got := runNode(t, "node/chat.mjs", base, pkg, asking)
			cases := len(want)
			if strings.HasPrefix(pkg, "ai-5") {
				cases -= 2 // it knows no approvals
			}
			if len(got) != cases {
				t.Errorf("%d outcomes, want %d", len(got), cases)
			}
			for i := range got {
				c := want[got[i].Case]
				c.check(t, &got[i])
			}
		})
	}
}

// The decoders of assistant-stream, the agents of AG-UI and the provider of the AI SDK read what is served.
func TestNpmStreams(t *testing.T) {
	base, asking := chatRig(t)
	calls := `calculator:result:{"expression":"7 + 35"} get_current_time:result:{"zone":"Asia/Tokyo"}`
	answered := chatCase{states: calls, text: []string{"42", "Tokyo"}}
	with := func(c chatCase, status, err string) chatCase {
		c.status, c.err = status, err
		if err != "" {
			c.text = c.text[:1]
		}
		return c
	}
	open := chatCase{states: strings.ReplaceAll(calls, ":result:", ":open:"), status: "requires-action:tool-calls"}
	first := open
	first.states, _, _ = strings.Cut(open.states, " get_")
	want := map[string]map[string]chatCase{}
	for _, protocol := range []string{"data-stream", "assistant-transport", "ui-message-stream"} {
		want["assistant-stream "+protocol] = map[string]chatCase{"rounds": with(answered, "complete:stop", ""), "slow": with(answered, "complete:stop", ""),
			"cut": with(answered, "incomplete:error", "provider_unavailable"), "approval": open}
	}
	want["assistant-stream ui-message-stream"]["approval"] = first // the other waits behind it
	done := "calculator:output-available get_current_time:output-available"
	want["assistant-transport commands"] = map[string]chatCase{"rounds": {states: done + " calculator:output-available", text: []string{"42", "Tokyo", "1 + 1 = 2"}, status: "true"},
		"slow": {states: done, text: []string{"42", "Tokyo"}, status: "true"}, "cut": {states: done, text: []string{"42"}, status: "true", err: "provider_unavailable"},
		"approval": {states: "calculator:approval-requested get_current_time:input-available", status: "true"}}
	for _, agent := range []string{"ag-ui-0", "ag-ui-1"} {
		want[agent] = map[string]chatCase{"rounds": with(answered, "success", ""), "slow": with(answered, "success", ""),
			"cut": with(answered, "", "provider_unavailable"), "approval": with(answered, "interrupt:success", "")}
	}
	for _, provider := range []string{"openai-compatible-1", "openai-compatible-2", "openai-compatible-3"} {
		text := chatCase{text: []string{"42", "Tokyo"}}
		want[provider] = map[string]chatCase{"rounds": with(text, "stop", ""), "cut": with(text, "", "connection to the model server"),
			"own tool": {states: "where_am_i:result:{}", text: []string{"Tokyo", "42"}, status: "stop"}}
	}
	cases := 0
	for _, c := range want {
		cases += len(c)
	}
	got := runNode(t, "node/streams.mjs", base, asking)
	if len(got) != cases {
		t.Errorf("%d outcomes, want %d", len(got), cases)
	}
	for i := range got {
		c, ok := want[got[i].Client][got[i].Case]
		if !ok {
			t.Errorf("an outcome of %s, %s", got[i].Client, got[i].Case)
			continue
		}
		c.check(t, &got[i])
	}
}
