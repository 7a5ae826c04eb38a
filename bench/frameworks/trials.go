package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

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
	var words []string
	if o.Waits != nil && *o.Waits {
		words = append(words, "still waits")
	}
	if o.Waits == nil && len(o.Asked) > 1 {
		words = append(words, fmt.Sprintf("asks %d times", len(o.Asked)))
	}
	switch n := len(o.Refunds); {
	case n == 1:
		words = append(words, "1 refund")
	case n > 1:
		words = append(words, fmt.Sprintf("%d refunds", n))
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

// errorMark is that of package task.
const errorMark = "[error] "

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
		t.server, t.model = t.servers.lenient, "sim/script-not-json"
		return t.with(ctx, t.ask(refundQuestion), t.decideAll("approve"))
	}},
	{"the same, strict server", func(ctx context.Context, t *trial) error {
		t.model = "sim/script-not-json"
		return t.with(ctx, t.ask(refundQuestion), t.decideAll("approve"))
	}},
	{"field missing", func(ctx context.Context, t *trial) error {
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
	binary, dir   string
	servers       *servers
	server, model string // the server is the strict one if the trial names no other
	hold          bool
	out           outcome
}

// try runs all trials.
func (p program) try(ctx context.Context, dir string) (outcomes []outcome, err error) {
	models, err := startServers()
	if err != nil {
		return nil, err
	}
	defer models.stop()
	for i, tr := range trials {
		t := &trial{binary: p.binary(dir), dir: filepath.Join(dir, fmt.Sprintf("%s-%d", p.folder, i)),
			servers: models, server: models.strict, model: sim.DemoModel}
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
		t.out.Answer = strings.Join(strings.Fields(strings.ReplaceAll(t.out.Answer, t.server, "MODEL-SERVER")), " ")
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
