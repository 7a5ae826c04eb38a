package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/lathe-run/lathe/sim"
)

// call is a refund that waits, as package task lists it.
type call struct{ ID, Run, Tool, Arguments string }

// An outcome is what a program did in a trial.
type outcome struct {
	Trial   string   `json:"trial"`
	Asked   []string `json:"asked"`             // the arguments of the refunds for which a person was asked
	Waits   *bool    `json:"waits,omitempty"`   // the refund waits after the restart
	Refunds []string `json:"refunds,omitempty"` // lines of the file of effects
	Answer  string   `json:"answer"`            // what the user reads at last, "" for nothing
}

// String summarizes an outcome for the table.
func (o outcome) String() string {
	words := []string{count(len(o.Refunds), "refund")}
	switch {
	case o.Waits == nil && len(o.Asked) != 1:
		words = append(words, "asked "+fmt.Sprint(len(o.Asked))+"×")
	case o.Waits != nil && *o.Waits:
		words = append(words, "still waits")
	}
	switch {
	case o.Answer == "":
		words = append(words, "no answer")
	case strings.Contains(o.Answer, errorMark):
		words = append(words, "error")
	default:
		words = append(words, "answer")
	}
	return strings.Join(words, ", ")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// errorMark is that of package task.
const errorMark = "[error] "

const (
	refundQuestion = `Please refund the order "A-17".`
	stateQuestion  = `What is the state of the order "A-17"?`
)

// scripts are the models of malformed calls: each corrects itself if it is asked again.
var scripts = map[string]string{
	"not-json": `
-- turn --
call: refund {"number": "A-17
-- turn --
call: refund {"number":"A-17"}
-- turn --
text: The order A-17 is refunded.
`,
	"missing": `
-- turn --
call: refund {}
-- turn --
call: refund {"number":"A-17"}
-- turn --
text: The order A-17 is refunded.
`,
}

// trials are in the order of the table.
var trials = []struct {
	name string
	run  func(ctx context.Context, t *trial) error
}{
	{"question", func(ctx context.Context, t *trial) error {
		return t.with(ctx, t.ask(stateQuestion))
	}},
	{"approved", func(ctx context.Context, t *trial) error {
		return t.with(ctx, t.ask(refundQuestion), t.decideAll("approve"))
	}},
	{"refused", func(ctx context.Context, t *trial) error {
		return t.with(ctx, t.ask(refundQuestion), t.decideAll("refuse"))
	}},
	{"arguments not JSON", func(ctx context.Context, t *trial) error {
		t.model = "sim/script-not-json"
		return t.with(ctx, t.ask(refundQuestion), t.decideAll("approve"))
	}},
	{"member missing", func(ctx context.Context, t *trial) error {
		t.model = "sim/script-missing"
		return t.with(ctx, t.ask(refundQuestion), t.decideAll("approve"))
	}},
	{"killed while it waits", func(ctx context.Context, t *trial) error {
		if err := t.with(ctx, t.ask(refundQuestion)); err != nil {
			return err
		}
		return t.with(ctx, t.restored, t.decideAll("approve"))
	}},
	{"killed after the effect", func(ctx context.Context, t *trial) error {
		var run string
		t.hold = true
		if err := t.with(ctx, t.ask(refundQuestion), func(ctx context.Context, p *process) (err error) {
			run, err = p.approveUntilRefunded(ctx)
			return err
		}); err != nil {
			return err
		}
		t.hold, t.out.Answer = false, ""
		return t.with(ctx, func(ctx context.Context, p *process) (err error) {
			t.out.Answer, err = p.post(ctx, "/continue?run="+url.QueryEscape(run), "")
			return err
		}, t.restored, t.decideAll("approve"))
	}},
}

// A trial runs processes of a program one after the other, on one state.
type trial struct {
	binary, dir, server, model string
	hold                       bool
	out                        outcome
}

// try runs all trials.
func (p program) try(ctx context.Context, dir string) (outcomes []outcome, err error) {
	parsed := map[string]*sim.Script{}
	for name, text := range scripts {
		if parsed[name], err = sim.ParseScript(strings.NewReader(text)); err != nil {
			return nil, err
		}
	}
	srv := httptest.NewServer(sim.New(&sim.Options{Scripts: parsed}).Handler())
	defer srv.Close()
	for i, tr := range trials {
		t := &trial{binary: p.binary(dir), dir: filepath.Join(dir, fmt.Sprintf("%s-%d", p.folder, i)), server: srv.URL, model: sim.DemoModel}
		t.out.Trial = tr.name
		if err := os.MkdirAll(t.dir, 0o700); err != nil {
			return nil, err
		}
		if err := tr.run(ctx, t); err != nil {
			return nil, fmt.Errorf("%s: %w", tr.name, err)
		}
		effects, err := os.ReadFile(t.effects())
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		t.out.Refunds = strings.FieldsFunc(string(effects), func(r rune) bool { return r == '\n' })
		t.out.Answer = strings.Join(strings.Fields(strings.ReplaceAll(t.out.Answer, srv.URL, "MODEL-SERVER")), " ")
		outcomes = append(outcomes, t.out)
	}
	return outcomes, nil
}

func (t *trial) effects() string { return filepath.Join(t.dir, "effects") }

// A step is one part of a trial, with a process that is running.
type step func(ctx context.Context, p *process) error

// with starts a process, takes the steps, and kills it.
func (t *trial) with(ctx context.Context, steps ...step) error {
	p, err := t.start(ctx)
	if err != nil {
		return err
	}
	defer p.kill()
	for _, s := range steps {
		if err := s(ctx, p); err != nil {
			return fmt.Errorf("%w\n%s", err, p.log)
		}
	}
	return nil
}

func (t *trial) ask(question string) step {
	return func(ctx context.Context, p *process) (err error) {
		t.out.Answer, err = p.post(ctx, "/ask", question)
		return err
	}
}

// restored notes whether the refund still waits.
func (t *trial) restored(ctx context.Context, p *process) error {
	calls, err := p.waiting(ctx)
	waits := len(calls) > 0
	t.out.Waits = &waits
	return err
}

// decideAll decides each refund that waits, until none does: at most ten.
func (t *trial) decideAll(verb string) step {
	return func(ctx context.Context, p *process) error {
		for range 10 {
			calls, err := p.waiting(ctx)
			if err != nil || len(calls) == 0 {
				return err
			}
			t.out.Asked = append(t.out.Asked, calls[0].Arguments)
			if t.out.Answer, err = p.post(ctx, "/"+verb+"?id="+url.QueryEscape(calls[0].ID), ""); err != nil {
				return err
			}
			if strings.Contains(t.out.Answer, errorMark) {
				return nil
			}
		}
		return errors.New("it asks again and again")
	}
}

// A process is one process of a program.
type process struct {
	cmd   *exec.Cmd
	base  string
	lines *bufio.Scanner // of its output
	log   *strings.Builder
}

// start starts the program and waits until it listens.
func (t *trial) start(ctx context.Context) (*process, error) {
	args := []string{"-model-url", t.server, "-model", t.model, "-state", t.dir, "-effects", t.effects()}
	if t.hold {
		args = append(args, "-hold")
	}
	p := &process{cmd: exec.CommandContext(ctx, t.binary, args...), log: &strings.Builder{}}
	p.cmd.Stderr = p.log
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.lines = bufio.NewScanner(stdout)
	addr, err := p.line("ready ")
	if err != nil {
		p.kill()
		return nil, fmt.Errorf("%w\n%s", err, p.log)
	}
	p.base = "http://" + addr
	return p, nil
}

// line reads the output up to a line with the prefix and returns the rest of that.
func (p *process) line(prefix string) (string, error) {
	for p.lines.Scan() {
		if rest, ok := strings.CutPrefix(p.lines.Text(), prefix); ok {
			return rest, nil
		}
	}
	return "", fmt.Errorf("the process has ended before it printed %q", prefix)
}

// kill ends the process without notice (SIGKILL).
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

func (p *process) post(ctx context.Context, path, body string) (string, error) {
	return p.do(ctx, http.MethodPost, path, body)
}

func (p *process) do(ctx context.Context, method, path, body string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, p.base+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: status %d: %s", path, resp.StatusCode, answer)
	}
	return string(answer), err
}

func (p *process) waiting(ctx context.Context) (calls []call, err error) {
	body, err := p.do(ctx, http.MethodGet, "/waiting", "")
	if err != nil {
		return nil, err
	}
	return calls, json.Unmarshal([]byte(body), &calls)
}

// approveUntilRefunded approves the refund that waits, returns once its effect has happened, and does not wait for its result.
func (p *process) approveUntilRefunded(ctx context.Context) (run string, err error) {
	calls, err := p.waiting(ctx)
	if err != nil {
		return "", err
	}
	if len(calls) != 1 {
		return "", fmt.Errorf("%d refunds wait, want 1", len(calls))
	}
	ctx, cancel := context.WithCancel(ctx)
	failed := make(chan struct{})
	go func() {
		defer close(failed)
		_, _ = p.post(ctx, "/approve?id="+url.QueryEscape(calls[0].ID), "")
		_ = p.cmd.Process.Kill() // if the refund was not made, the output ends
	}()
	_, err = p.line("refunded")
	p.kill() // and with it the request
	cancel()
	<-failed
	return calls[0].Run, err
}
