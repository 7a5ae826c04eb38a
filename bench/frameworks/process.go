package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"time"
)

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
