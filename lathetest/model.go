package lathetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/lathe-run/lathe"
)

// A Step is the answer of a [Model] to one model call: first the text, then the calls. The zero Step is an empty answer.
type Step struct {
	Text  string
	Calls []lathe.ToolCall
	// Usage is what the model reports at the end of the turn; zero: one input token per message and one output token per delta. A turn that
	// ends with an error reports none.
	Usage lathe.Usage
	// Hang makes the model block, after Text and Calls, until the context is done. The turn then ends with the error of the context.
	Hang bool
	// Err, if not nil, is the error with which the turn ends after Text and Calls. If it wraps no *[lathe.Error], it gets the code
	// upstream_error. If Hang is set, Err has no effect.
	Err error
}

// Text returns a step that answers with text.
func Text(text string) Step { return Step{Text: text} }

// Call returns a step that calls one tool. args is the argument text, which may be invalid JSON.
func Call(name, args string) Step {
	return Step{Calls: []lathe.ToolCall{{Name: name, Arguments: args}}}
}

// Fail returns a step that ends with the error of a failed request to a model server: code upstream_error, wrapping a [lathe.UpstreamError]
// with this HTTP status.
func Fail(status int) Step {
	kind := lathe.Upstream4xx
	switch {
	case status == 429:
		kind = lathe.UpstreamRateLimited
	case status >= 500:
		kind = lathe.Upstream5xx
	}
	return Step{Err: lathe.CodeUpstream.Wrap("lathetest", &lathe.UpstreamError{Kind: kind, Status: status})}
}

// A Model answers the n-th model call with the n-th step. A call beyond the last step fails with invalid_request, so that a test notices
// it. Tool calls without an id get call_1, call_2 and so on. Its methods may be called from several goroutines at once; concurrent model
// calls get the steps in an undefined order.
type Model struct {
	mu       sync.Mutex
	steps    []Step
	requests []lathe.Request
	calls    int
}

// NewModel returns a Model with these steps.
func NewModel(steps ...Step) *Model { return &Model{steps: slices.Clone(steps)} }

// Describe implements [lathe.Model]. Provider and Model are "lathetest", and the dialect is "native".
func (m *Model) Describe() lathe.ModelInfo {
	return lathe.ModelInfo{Provider: "lathetest", Model: "lathetest", Dialect: "native"}
}

// Requests returns the requests of all model calls so far, in order, including those beyond the last step. The caller must not change their
// messages.
func (m *Model) Requests() []lathe.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

// Unused returns the number of steps that no model call has used.
func (m *Model) Unused() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return max(len(m.steps)-len(m.requests), 0)
}

// next records req and returns its step, with an id for each call.
func (m *Model) next(req *lathe.Request) (Step, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	kept := *req
	kept.Messages, kept.Tools = slices.Clone(req.Messages), slices.Clone(req.Tools)
	m.requests = append(m.requests, kept)
	n := len(m.requests)
	if n > len(m.steps) {
		return Step{}, lathe.CodeInvalidRequest.Errorf("lathetest", "model call %d, but the script has %d steps", n, len(m.steps))
	}
	s := m.steps[n-1]
	s.Calls = slices.Clone(s.Calls)
	for i := range s.Calls {
		m.calls++
		if s.Calls[i].ID == "" {
			s.Calls[i].ID = fmt.Sprintf("call_%d", m.calls)
		}
	}
	return s, nil
}

// Generate implements [lathe.Model]. It yields the text word by word, and the arguments of each call in two pieces.
func (m *Model) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		s, err := m.next(req)
		if err != nil {
			yield(lathe.Delta{}, err)
			return
		}
		message := s.message()
		deltas := deltasOf(&message)
		for _, d := range deltas {
			if ctx.Err() != nil {
				break
			}
			if !yield(d, nil) {
				return
			}
		}
		if s.Hang {
			<-ctx.Done()
		}
		switch {
		case ctx.Err() != nil:
			yield(lathe.Delta{}, lathe.CodeCancelled.Wrap("lathetest", context.Cause(ctx)))
		case s.Err != nil:
			yield(lathe.Delta{}, coded(s.Err))
		default:
			yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: s.finish(len(req.Messages), len(deltas))}, nil)
		}
	}
}

// coded returns err as a *lathe.Error, which the contract of a model requires.
func coded(err error) error {
	if e := (*lathe.Error)(nil); errors.As(err, &e) {
		return err
	}
	return lathe.CodeUpstream.Wrap("lathetest", err)
}

// message returns the message of the step.
func (s *Step) message() lathe.Message {
	m := lathe.Message{Role: lathe.RoleAssistant}
	if s.Text != "" {
		m.Parts = append(m.Parts, lathe.Text{Text: s.Text})
	}
	for _, c := range s.Calls {
		m.Parts = append(m.Parts, c)
	}
	return m
}

// deltasOf returns the deltas of a message: texts word by word, and the arguments of each call in two pieces.
func deltasOf(m *lathe.Message) (out []lathe.Delta) {
	words := func(d lathe.Delta, text string) {
		for _, word := range strings.SplitAfter(text, " ") {
			d.Text = word
			if word != "" {
				out = append(out, d)
			}
		}
	}
	calls := 0
	for _, p := range m.Parts {
		switch p := p.(type) {
		case lathe.Text:
			d := lathe.Delta{Kind: lathe.DeltaText, Unreadable: p.Unreadable}
			if p.Commentary {
				d.Kind = lathe.DeltaCommentary
			}
			words(d, p.Text)
		case lathe.Reasoning:
			words(lathe.Delta{Kind: lathe.DeltaReasoning}, p.Text)
		case lathe.Refusal:
			words(lathe.Delta{Kind: lathe.DeltaRefusal}, p.Text)
		case lathe.ToolCall:
			out = append(out, lathe.Delta{Kind: lathe.DeltaCallStart, Index: calls, ID: p.ID, Name: p.Name})
			runes := []rune(p.Arguments)
			half := len(runes) / 2
			for _, piece := range []string{string(runes[:half]), string(runes[half:])} {
				if piece != "" {
					out = append(out, lathe.Delta{Kind: lathe.DeltaCallArgs, Index: calls, Text: piece})
				}
			}
			out = append(out, lathe.Delta{Kind: lathe.DeltaCallEnd, Index: calls, ID: p.ID, Incomplete: p.Incomplete})
			calls++
		default: // parts without deltas
		}
	}
	return out
}

func (s *Step) finish(messages, deltas int) *lathe.Finish {
	f := &lathe.Finish{Reason: lathe.FinishStop, RawReason: "stop", Model: "lathetest", Usage: s.Usage, Message: s.message()}
	if len(s.Calls) > 0 {
		f.Reason, f.RawReason = lathe.FinishToolCalls, "tool_calls"
	}
	if f.Usage == (lathe.Usage{}) {
		f.Usage = lathe.Usage{InputTokens: int64(messages), OutputTokens: int64(deltas), TotalTokens: int64(messages + deltas)}
	}
	return f
}
