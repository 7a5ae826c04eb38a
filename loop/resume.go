package loop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/runinput"
	"github.com/lathe-run/lathe/tool"
)

// Versions of the JSON form of a [start]. Members are added, never renamed. A start that an older program would resume with a different
// meaning has the later version, which that program refuses.
const (
	startPlain   = 1
	startVersion = 2 // a start with hosted tools, betas or an API version
)

// A start is the input of a resumable run, as RunStarted stores it as content.
type start struct {
	Version     int               `json:"version"`
	Depth       int               `json:"depth,omitempty"`
	ClientTools []*lathe.ToolSpec `json:"client_tools,omitempty"`
	Allow       []string          `json:"allow,omitempty"`
	AllowNone   bool              `json:"allow_none,omitempty"` // Allow is empty but not nil
	Settings    *lathe.Settings   `json:"settings,omitempty"`
	Limits      *lathe.Limits     `json:"limits,omitempty"`
	Sampling    *lathe.Sampling   `json:"sampling,omitempty"`
	User        string            `json:"user,omitempty"`
	Overrides   []lathe.Member    `json:"overrides,omitempty"`
	HostedTools []json.RawMessage `json:"hosted_tools,omitempty"`
	Betas       []string          `json:"betas,omitempty"`
	APIVersion  string            `json:"api_version,omitempty"`
	Client      json.RawMessage   `json:"client,omitempty"`
}

// startJSON returns the JSON form of the [start] of in, from which a later process can resume the run.
func (in *Input) startJSON() (json.RawMessage, error) {
	s := start{
		Version: startPlain, Depth: in.Run.Depth, ClientTools: in.ClientTools, Allow: in.Allow, AllowNone: in.Allow != nil && len(in.Allow) == 0,
		Settings: in.Settings, Limits: in.Limits, Sampling: in.Sampling, User: in.extra.User, Overrides: in.Overrides,
		HostedTools: in.extra.HostedTools, Betas: in.extra.Betas, APIVersion: in.extra.APIVersion, Client: in.extra.Client,
	}
	if len(in.extra.HostedTools) > 0 || len(in.extra.Betas) > 0 || in.extra.APIVersion != "" {
		s.Version = startVersion
	}
	text, err := json.Marshal(&s)
	if err != nil {
		return nil, fmt.Errorf("the run could not be resumed later: %w", err)
	}
	return text, nil
}

// readStart parses the output of startJSON. For empty input it returns a start of version 0, which cannot be resumed, and no error.
func readStart(raw json.RawMessage) (*start, error) {
	s := &start{}
	if len(bytes.TrimSpace(raw)) == 0 {
		return s, nil
	}
	if err := json.Unmarshal(raw, s); err != nil {
		return s, fmt.Errorf("what the run was started from cannot be read: %w", err)
	}
	if s.Version > startVersion {
		return s, fmt.Errorf("the run was started by a newer version of this program (%d, known is %d)", s.Version, startVersion)
	}
	for _, spec := range s.ClientTools {
		if spec == nil {
			return s, errors.New("what the run was started from has a client tool that is null")
		}
		for _, schema := range []*json.RawMessage{&spec.Schema, &spec.OutputSchema} {
			if string(*schema) == "null" { // a schema that was not set
				*schema = nil
			}
		}
	}
	return s, nil
}

// Client returns the JSON about the client that started the run, which the gateway stored with the input of the run. It returns nil if the
// gateway stored none, if a store has removed the content of the run, or if the input cannot be parsed.
func (s *State) Client() json.RawMessage {
	old, err := readStart(s.input)
	if err != nil {
		return nil
	}
	return old.Client
}

// restored returns the input that a resumed run was started with, with the fields of in that apply to a resumed run. It returns an input
// with the error, too: the run then ends at once.
func (in *Input) restored() (*Input, error) {
	s := in.Resume
	old, err := readStart(s.input)
	if err == nil && s.Finished != nil {
		err = errors.New("the run has ended")
	} else if err == nil && (s.LastID == 0 || old.Version == 0) {
		err = errors.New("the run was not started as one that can be resumed")
	}
	allow := old.Allow
	if old.AllowNone {
		allow = []string{}
	}
	return &Input{
		Run: s.Run, Messages: s.Messages[:s.Start], ClientTools: old.ClientTools, Allow: allow, Settings: old.Settings, Limits: old.Limits,
		Sampling: old.Sampling, Overrides: old.Overrides, Park: true, Target: s.Target, Resume: s, Answers: in.Answers,
		extra: runinput.Extra{
			User: old.User, HostedTools: old.HostedTools, Betas: old.Betas, APIVersion: old.APIVersion,
			Executor: s.Executor, Continues: s.Continues, TakenOver: s.TakenOver,
			Suspend: in.extra.Suspend, Suspended: in.extra.Suspended, Elapsed: in.extra.Elapsed,
		},
	}, err
}

// history returns the messages of the first request of this process.
func (in *Input) history() []lathe.Message {
	if in.Resume != nil {
		return in.Resume.Messages
	}
	return in.Messages
}

// before returns what the runner must know about the calls before the resume.
func (s *State) before() *tool.Resumed {
	b := &tool.Resumed{Planned: s.Planned, Calls: takenCalls(s.Messages[s.Start-s.TakenOver : s.Start]), Started: s.Start, Loaded: s.Loaded}
	for i := range s.Trace {
		b.Calls = append(b.Calls, s.Trace[i].Calls...)
	}
	for _, o := range s.Open {
		b.Open = append(b.Open, o.ID)
	}
	b.Answers = s.answers()
	return b
}

// answers returns the calls of the run that have a result, in call order.
func (s *State) answers() []tool.Answered {
	labels := map[string]string{}
	for i := range s.Trace {
		for _, c := range s.Trace[i].Calls {
			labels[c.ID] = c.Tool
		}
	}
	var out []tool.Answered
	calls := map[string]lathe.ToolCall{}
	for i := s.Start; i < len(s.Messages); i++ {
		for _, p := range s.Messages[i].Parts {
			switch p := p.(type) {
			case lathe.ToolCall:
				calls[p.ID] = p
			case lathe.ToolResult:
				out = append(out, tool.Answered{ToolCall: calls[p.CallID], Tool: labels[p.CallID], Code: p.Code, Content: p.Content})
			default: // neither a call nor a result
			}
		}
	}
	return out
}

// resumed returns the event with which the run continues.
func (s *State) resumed() *event.RunResumed {
	e := &event.RunResumed{Reason: s.Paused, Pending: make([]string, len(s.Open))}
	if e.Reason == "" {
		e.Reason = lathe.ReasonInterrupted
	}
	for i := range s.Open {
		e.Pending[i] = s.Open[i].ID
	}
	return e
}

// resume continues the run from the state of its events, up to the next model call.
func (r *run) resume(ctx context.Context) {
	s := r.in.Resume
	r.result.Usage, r.result.Cost = s.Usage, s.Cost
	r.result.Trace = append(r.result.Trace, s.Trace...)
	r.from.loaded = slices.Clip(s.Loaded)
	r.followUp.resume(s.Messages[s.Start:])
	r.result.ToolCalls = s.Planned
	if s.Attempt > 0 { // the model call did not finish: the turn is repeated
		r.turn, r.from.attempts = s.Turn-1, s.Attempt
		r.result.Trace = slices.DeleteFunc(r.result.Trace, func(t event.TurnTrace) bool { return t.Turn >= s.Turn })
		return
	}
	if !s.answered {
		return
	}
	last := s.Messages[s.tail-1]
	r.call.message = last
	r.call.answer, r.call.blank = answerOf(&last)
	r.call.asked = r.openCalls(s)
	for i := range s.Open { // answerCalls counts these calls again
		if s.Open[i].Planned && r.result.ToolCalls > 0 {
			r.result.ToolCalls--
		}
	}
	r.from.order, r.from.tail = s.order, s.tail
	switch {
	case isCut(s.reason):
		r.endCut(ctx, s.reason)
	case len(s.order) == 0:
		r.answer()
	case len(s.Open) > 0:
		r.execute(ctx)
	}
	r.from.order = nil
}

// openCalls returns the calls without a result, in the form that the runner requires.
func (r *run) openCalls(s *State) []tool.Call {
	single := r.settings.ParallelToolCalls != nil && !*r.settings.ParallelToolCalls
	calls := make([]tool.Call, 0, len(s.Open))
	for i := range s.Open {
		o := &s.Open[i]
		c := tool.Call{ToolCall: o.ToolCall, Refuse: o.Refused}
		if o.Planned {
			c.Parked = &tool.Parked{Seq: o.Seq, Digest: o.Digest, ExpiresAt: o.ExpiresAt}
			c.Begun = o.Begun && o.Refused == ""
		}
		if a, ok := r.in.Answers[o.ID]; ok {
			c.Answer = &a
		}
		if single && c.Refuse == "" && slices.Index(s.order, o.ID) > 0 {
			c.Refuse = lathe.CodeTooManyCalls
		}
		calls = append(calls, c)
	}
	return calls
}
