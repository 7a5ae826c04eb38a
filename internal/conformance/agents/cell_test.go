package agents

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Times of one prompt.
const (
	forwardTime = 300 * time.Millisecond // in which the server forwards a text to the agent
	promptTime  = 3 * time.Minute
	cancelTime  = 15 * time.Second // from Ctrl-C to the end of the server's run
)

const promptText = "Please do what the note says."

// A cell is one agent in one case.
type cell struct {
	agent    *Agent
	scenario *scenario
	root     string

	// wire, if set, is the wire of the model: a second server without tools speaks it in front of the upstream.
	wire string

	work     string // the folder in which the agent is started
	upstream *upstream
	server   *server
	setting  *Setting
	cmd      *exec.Cmd
	output   bytes.Buffer
	took     time.Duration
	again    bool // the prompt was given a second time
	early    bool // the agent ended before the answer stopped
	forgot   bool // the next prompt came without the call of the server's tool
	silent   bool // the agent ended before the answer to the shorter conversation
	gaveUp   bool // the agent ended with an error that says that the conversation is too long
	before   int  // executions of the server's tool before that
}

// run plays the case and returns what did not hold.
func (c *cell) run(t *testing.T) error {
	script := c.scenario.script
	call := func(name string, arguments map[string]any) string {
		text, err := json.Marshal(arguments)
		if err != nil {
			t.Fatal(err)
		}
		return "call: " + name + " " + string(text)
	}
	long := strings.Repeat("x", c.scenario.long)
	for n := 1; strings.Contains(script, "OWN"); n++ { // each another command
		script = strings.Replace(script, "OWN", call(c.agent.Tool, c.agent.Arguments(fmt.Sprintf("cat note.txt && echo run %d >> own.log # %s", n, long))), 1)
	}
	script = strings.Replace(script, "POST", call(serverTool, map[string]any{"text": "hello" + long}), 1)
	var h *hold
	if c.scenario.hold > 0 {
		h = &hold{request: c.scenario.hold, reached: make(chan struct{}), release: make(chan struct{}), gone: make(chan struct{})}
	}
	c.upstream = startUpstream(t, c.agent.Tool, script, h, c.scenario.fail)
	model := fmt.Sprintf("base_url: %q", c.upstream.url+"/v1")
	if c.scenario.strange {
		wire := ownWires[c.agent.Wire]
		c.upstream.strange = unknownEvents[wire]
		model = fmt.Sprintf("wire: %s, base_url: %q", wire, c.upstream.url+cmp.Or(modelPaths[wire], "/v1"))
	}
	rule := "allow"
	if c.scenario.asks {
		rule = "ask"
	}
	if c.wire != "" {
		between := startServer(t, fmt.Sprintf("tools: {builtin: []}\nmodels: {bird: {%s, max_attempts: 1}}\n", model))
		model = fmt.Sprintf("wire: %s, base_url: %q", c.wire, between.base+modelPaths[c.wire])
	}
	c.server = startServer(t, fmt.Sprintf(`default_model: bird
tools:
  builtin: []
  egress: {private: ["127.0.0.1"]}
  http:
    %s: {description: Posts a note., method: POST, url: "%s/post", parameters: {text: {in: body, required: true}}, effect: writes, allowlist: ["*"]}
policy: {tools: {%s: %s}}
models:
  bird: {%s, max_attempts: 1}
keys: {agent: {key: "${%s}"}}
`, serverTool, c.upstream.url, serverTool, rule, model, KeyEnv))
	home := t.TempDir()
	c.work = filepath.Join(home, "work")
	if err := errors.Join(os.MkdirAll(c.work, 0o700), os.WriteFile(filepath.Join(c.work, "note.txt"), []byte(secretText+"\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	c.setting = &Setting{Home: home, URL: c.server.base, Model: "bird"}
	if err := c.agent.Write(c.server.bin, c.setting); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := c.start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.wait() }()
	if h != nil {
		select {
		case <-h.reached:
			time.Sleep(forwardTime)
			c.scenario.during(c, t)
		case err := <-ended:
			c.early = true
			ended <- err
		}
	}
	err := <-ended
	if err != nil && c.scenario.again {
		c.again, c.before = true, c.upstream.posted()
		t.Logf("%s ended with %v and is asked again; its output:\n%s", c.agent.Name, err, tail(c.output.String(), 2000))
		c.output.Reset()
		if err := c.start(); err != nil {
			t.Fatal(err)
		}
		err = c.wait()
	}
	if err == nil && c.scenario.asks {
		if problem := c.approve(t); problem != nil {
			return problem
		}
	}
	if err == nil && (c.scenario.next || c.scenario.asks) {
		more := c.agent.more
		if more == nil { // the same prompt in another session
			more = c.agent.args
		}
		c.output.Reset()
		if err := c.startWith(more(promptText)); err != nil {
			t.Fatal(err)
		}
		err = c.wait()
	}
	c.took = time.Since(began)
	return c.check(t, err)
}

// footnote returns the mark of a case that passed with a remark.
func (c *cell) footnote() string {
	switch {
	case c.again && c.agent.stamps:
		return " ²"
	case c.again:
		return " ¹"
	case c.forgot:
		return " ³"
	case c.gaveUp:
		return " ⁴"
	case c.silent:
		return " ⁵"
	}
	return ""
}

// start starts the agent.
func (c *cell) start() error { return c.startWith(c.agent.args(promptText)) }

func (c *cell) startWith(args []string) error {
	program, args, env := c.agent.command(c.root, c.setting, args)
	c.cmd = exec.Command(program, args...)
	c.cmd.Dir, c.cmd.Env = c.work, env
	c.cmd.Stdout, c.cmd.Stderr = &c.output, &c.output
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.cmd.WaitDelay = 2 * time.Second
	return c.cmd.Start()
}

// wait returns when the agent has ended, which it must within promptTime.
func (c *cell) wait() error {
	stop := time.AfterFunc(promptTime, func() { c.signal(syscall.SIGKILL) })
	err := c.cmd.Wait()
	if !stop.Stop() {
		return fmt.Errorf("not finished after %s", promptTime)
	}
	if errors.Is(err, exec.ErrWaitDelay) { // a child of it still has the pipes
		err = nil
	}
	c.signal(syscall.SIGKILL) // its children
	return err
}

// signal sends a signal to the agent's process group, as a terminal does.
func (c *cell) signal(s syscall.Signal) { _ = syscall.Kill(-c.cmd.Process.Pid, s) } // an error: it has ended

// restart kills the server in the middle of a stream and starts it again.
func (c *cell) restart(t *testing.T) {
	c.server.kill()
	close(c.upstream.hold.release)
	c.server.start(t)
}

// interrupt presses Ctrl-C.
func (c *cell) interrupt(*testing.T) { c.signal(syscall.SIGINT) }

// unknownTool matches what agents say of a call to a tool that they do not have.
var unknownTool = regexp.MustCompile(`(?i)unsupported call|unknown tool|no such tool|tool [^ ]{1,40} (was |is )?not (found|available)|unavailable tool|invalid tool`)

// tooLong matches what agents say to their users of a conversation that is too long for the model.
var tooLong = regexp.MustCompile(`(?i)maximum context length|prompt is too long|context window|ran out of room|exceeds? the (maximum|context)|too long for`)

// approve has the user read that the call waits, and approves it.
func (c *cell) approve(t *testing.T) error {
	if text := c.output.String(); !strings.Contains(text, serverTool+" has not been called") || !strings.Contains(text, "lathe runs approve") {
		return fmt.Errorf("the output does not say that the call waits")
	}
	if n := c.upstream.posted(); n != 0 {
		return fmt.Errorf("the server's tool ran %d times before it was approved", n)
	}
	all := c.server.runs(t) // some agents ask the model about other things beside the prompt
	i := slices.IndexFunc(all, func(r run) bool { return r.Status == "parked" })
	if i < 0 {
		return fmt.Errorf("none of %d runs waits", len(all))
	}
	id := all[i].ID
	cmd := exec.Command(c.server.bin, "runs", "approve", "--server", c.server.base, id)
	cmd.Env = append(os.Environ(), "LATHE_SERVER_KEY="+Key)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("lathe runs approve: %w: %s", err, out)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		all := c.server.runs(t)
		switch i := slices.IndexFunc(all, func(r run) bool { return r.ID == id }); {
		case i >= 0 && all[i].Status == "completed":
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("the run has not completed a minute after the approval: %v", all)
		}
	}
}

// check returns what does not hold after the agent has ended.
func (c *cell) check(t *testing.T, ended error) error {
	var problems []error
	report := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if c.early {
		report("the agent ended before the answer that stops had begun")
	}
	if c.scenario.cancelled {
		select {
		case <-c.upstream.hold.gone:
		case <-time.After(cancelTime):
			report("the model call goes on %s after Ctrl-C", cancelTime)
		}
		if s := c.stopped(t); s != "" {
			report("the server's run is %s after Ctrl-C", s)
		}
	} else if c.scenario.overflow && tooLong.MatchString(c.output.String()) && !strings.Contains(c.output.String(), answerText) {
		c.gaveUp = true
	} else if c.scenario.overflow && c.agent.silent && ended == nil && strings.TrimSpace(c.output.String()) == "" {
		c.silent = true
	} else {
		if ended != nil && !c.scenario.overflow { // some end with the code of the error, though they went on after it

			report("%w", ended)
		}
		answer := answerText
		if c.scenario.asks && c.agent.more == nil { // the request is equal to the first one, and gets the answer of its run
			answer = notePosted
		}
		if !strings.Contains(c.output.String(), answer) {
			report("the answer is not in the output")
		}
	}
	log, _ := os.ReadFile(filepath.Join(c.work, "own.log")) // no file: no execution
	if n := strings.Count(string(log), "\n"); n != c.scenario.own {
		report("the agent's own tool ran %d times, want %d", n, c.scenario.own)
	}
	c.upstream.mu.Lock()
	defer c.upstream.mu.Unlock()
	posts := c.scenario.posts
	if c.again {
		if c.before != posts {
			report("the server's tool ran %d times before the prompt was given again, want %d", c.before, posts)
		}
		if c.agent.stamps {
			posts++
		}
	}
	if want := len("hello") + c.scenario.long; c.scenario.posts > 0 && c.upstream.longest != want {
		report("the server's tool got a text of %d bytes, want %d", c.upstream.longest, want)
	}
	if n := c.upstream.posts; n != posts {
		report("the server's tool ran %d times, want %d", n, posts)
	}
	seen := map[string]int{} // the most in one request
	for i := range c.upstream.requests {
		results := map[string]int{}
		for _, r := range c.upstream.requests[i].results {
			for _, text := range []string{secretText, postedText} {
				results[text] += min(strings.Count(r, text), 1)
				seen[text] = max(seen[text], results[text])
			}
			if m := unknownTool.FindString(r); m != "" {
				report("a tool result says %q", m)
			}
		}
	}
	if n := len(c.upstream.requests); c.scenario.next && n > 0 {
		c.forgot = !strings.Contains(strings.Join(c.upstream.requests[n-1].results, " "), postedText)
		if c.forgot && c.agent.carries {
			report("the model does not get the result of the server's tool with the next prompt")
		}
	}
	if seen[secretText] != c.scenario.own || seen[postedText] != c.scenario.posts {
		report("the model got %d results of the agent's tool and %d of the server's, want %d and %d", seen[secretText], seen[postedText], c.scenario.own, c.scenario.posts)
	}
	if m := unknownTool.FindString(c.output.String()); m != "" {
		report("the output says %q", m)
	}
	return errors.Join(problems...)
}

// stopped returns the state of the run that was interrupted; "": it was cancelled.
func (c *cell) stopped(t *testing.T) string {
	state := "not stored"
	for range int(cancelTime / (100 * time.Millisecond)) {
		for _, r := range c.server.runs(t) {
			state = r.Status + " (" + r.Reason + ")"
			if r.Status == "cancelled" || r.Reason == "cancelled" {
				return ""
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	return state
}

// String lists the requests of turns.
func (u *upstream) String() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	var b strings.Builder
	for i := range u.requests {
		r := &u.requests[i]
		fmt.Fprintf(&b, "%d: %d messages, results %.300q\n", i+1, r.messages, r.results)
	}
	return b.String()
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }
