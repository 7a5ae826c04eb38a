package server

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/gateway/pairs"
	problems "github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/runinput"
	"github.com/lathe-run/lathe/internal/wire/openai"
	"github.com/lathe-run/lathe/loop"
)

// maxReplayEvents is the maximum number of events in the log of a run that is replayed. The log is read into memory.
const maxReplayEvents = 20_000

// replaySettings are the allowed members of `settings` in the body of a replay request.
var replaySettings = []string{"temperature", "top_p", "max_completion_tokens", "seed", "stop", "reasoning_effort",
	"tool_choice", "parallel_tool_calls", "tool_use_mode", "tool_failure_policy", "limits"}

// Values of `tools` in the body of a replay request: where the results of calls come from.
const (
	toolsRecorded = "recorded" // from the log of the recorded run; no tool is called
	toolsLive     = "live"     // from the tools, which are called again
)

// A replayRequest is the body of a request that replays a run.
type replayRequest struct {
	model, tools string
	named        bool // the request names a model
	settings     *openai.ChatRequest
	options      *requestOptions
}

// replayRun handles POST /api/runs/{id}/replay: it starts a new detached run, of the caller's key, with the conversation
// that a recorded run began with.
func (h *runsHandler) replayRun(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	id := r.PathValue("id")
	req, p := readReplay(c.body)
	if p != nil {
		return p
	}
	record, p := h.record(r.Context(), c, id)
	if p != nil {
		return p
	}
	n, p := h.planReplay(r.Context(), c, req, record)
	if p != nil {
		return p
	}
	runinput.Of(n.in).Replays = id
	n.request = append([]byte(id+"\n"), c.body...)
	return h.beginRun(w, r, c, n)
}

// readReplay reads the body of a replay request. An empty body stands for {}.
func readReplay(body []byte) (*replayRequest, *problem) {
	req := &replayRequest{tools: toolsRecorded, options: &requestOptions{}}
	if len(body) == 0 {
		body = []byte("{}")
	}
	body, p := objectOf(body, "")
	if p != nil {
		return nil, p
	}
	settings := []byte(`{"model":"-","prompt":"-"}`) // readRunRequest requires a model and a prompt, which are not used
	p = eachMember(body, "", []string{"model", "settings", "tools", "session"}, func(name, _ string, v []byte) *problem {
		switch name {
		case "model":
			req.named = true
			return take(v, &req.model, name, "a text")
		case "tools":
			return word(v, &req.tools, name, toolsRecorded, toolsLive)
		case "session":
			return req.options.member(name, name, v)
		default:
			if p := eachMember(v, name, replaySettings, acceptMember); p != nil {
				return p
			}
			members := v[1:] // without the opening brace
			if members[rawjson.SkipSpace(members, 0)] != '}' {
				settings = append([]byte(`{"model":"-","prompt":"-",`), members...)
			}
			return nil
		}
	})
	if p != nil {
		return nil, underBody(p)
	}
	if req.settings, p = readRunRequest(settings, req.options); p != nil {
		if p.Param != "" {
			p.Param = "settings." + p.Param
		}
		return nil, p
	}
	return req, nil
}

// record reads the log of a run that the caller may see, at most maxReplayEvents events.
func (h *runsHandler) record(ctx context.Context, c *caller, id string) (record []event.Event, p *problem) {
	for e, p := range h.events(ctx, c, id) {
		if p != nil {
			return nil, p
		}
		if len(record) == maxReplayEvents {
			return nil, conflict("run_too_long", "The run has more events than can be run again.")
		}
		record = append(record, *e)
	}
	if len(record) == 0 {
		return nil, noRun()
	}
	return record, nil
}

// planReplay makes the input of the new run: the conversation of the record, with the settings and limits that any request
// of the caller for that model gets.
func (h *runsHandler) planReplay(ctx context.Context, c *caller, req *replayRequest, record []event.Event) (*newRun, *problem) {
	old, p := recordedInput(record)
	if p == nil {
		p = h.checkSize(ctx, c, old.Messages)
	}
	if p != nil {
		return nil, p
	}
	if !req.named {
		req.model = record[0].Data.(*event.RunStarted).Target
	}
	// The record lists the tools of this server that the model might not call as disallowed client tools.
	isOwn := func(t *lathe.ToolSpec) bool { return t.Disallowed && c.ownTool(t.Name) != nil }
	client := slices.DeleteFunc(slices.Clone(old.ClientTools), isOwn)
	given := &runRequest{model: req.model, messages: old.Messages, sampling: sampledAs(old.Sampling, &req.settings.Sampling), user: runinput.Of(old).User, tools: client,
		toolsParam: "client_tools", choice: req.settings.ToolChoice, parallel: req.settings.ParallelToolCalls, options: req.options, reserved: 1,
		place: func(path string) string { return path }}
	if old.Settings != nil && given.choice.Mode == "" {
		given.choice = old.Settings.ToolChoice
	}
	if fault := given.checkRecorded(); fault != "" {
		return nil, notReplayable(fault)
	}
	plan := &plan{}
	if p := h.makePlan(ctx, c, given, plan); p != nil {
		return nil, p
	}
	in := &plan.in
	if old.Allow != nil { // a tool that the recorded run might not use is not allowed in the new run
		if in.Allow == nil {
			in.Allow = c.toolNames()
		}
		in.Allow = slices.DeleteFunc(slices.Clone(in.Allow), func(name string) bool { return !slices.Contains(old.Allow, name) })
	}
	if req.tools == toolsLive {
		in.Park = true
		return &newRun{loop: plan.model.Loop, in: in, status: http.StatusAccepted, named: true}, nil
	}
	l, p := c.replayLoop(req.model, record)
	if p != nil {
		return nil, p
	}
	// Calls of client tools get recorded results, too. So the run is never suspended, and need not be resumable.
	if in.Allow != nil {
		in.Allow = append(slices.Clone(in.Allow), namesOf(in.ClientTools)...) // a copy: the slice may belong to the key
	}
	in.ClientTools = nil
	return &newRun{loop: l, in: in, status: http.StatusAccepted}, nil
}

// recordedInput returns what the recorded run began with.
func recordedInput(record []event.Event) (*loop.Input, *problem) {
	in, err := loop.Began(&record[0])
	switch {
	case record[0].Removed > 0:
		return nil, contentRemoved()
	case err != nil:
		return nil, notReplayable(problems.Cause(err))
	case len(in.Messages) == 0:
		return nil, conflict("not_replayable", "The store does not have what the run began with.")
	}
	return in, nil
}

// replayLoop returns the loop that repeats a recorded run with the results of its log.
func (c *access) replayLoop(model string, record []event.Event) (*loop.Loop, *problem) {
	if c.setup.Replay == nil {
		return nil, conflict("replay_unavailable", `This gateway repeats no run with recorded results; "tools": "live" calls the tools again.`)
	}
	l, err := c.setup.Replay(model, record)
	switch {
	case lathe.CodeOf(err) == lathe.CodeContentRemoved:
		return nil, contentRemoved()
	case err != nil:
		return nil, notReplayable(problems.Cause(err))
	}
	return l, nil
}

// checkRecorded returns the first fault of a record that the server would refuse in a request of a client, or "". Records
// can be imported, so they are untrusted input, and they do not pass the parser of requests.
func (req *runRequest) checkRecorded() string {
	for i, m := range req.messages {
		switch m.Role {
		case lathe.RoleSystem, lathe.RoleDeveloper, lathe.RoleUser, lathe.RoleAssistant, lathe.RoleTool: // as in requests
		default:
			return fmt.Sprintf("the role of messages[%d] is none of system, developer, user, assistant and tool", i)
		}
		if m.Role != lathe.RoleAssistant && len(m.Calls()) > 0 {
			return fmt.Sprintf("messages[%d] has tool calls and is not of the assistant", i)
		}
	}
	if bad := pairs.Check(req.messages); bad != nil {
		return fmt.Sprintf("the calls and results of messages[%d] do not match", bad.Message)
	}
	names := map[string]bool{}
	for i, t := range req.tools {
		switch {
		case !safeName().MatchString(t.Name):
			return fmt.Sprintf("the name of %s[%d] is not 1 to 64 letters, digits, _ and -", req.toolsParam, i)
		case names[t.Name]:
			return "two of " + req.toolsParam + " have the name " + t.Name
		case len(t.Schema) > 0 && (rawjson.Check(t.Schema, rawjson.Limits{}) != nil || t.Schema[rawjson.SkipSpace(t.Schema, 0)] != '{'):
			return fmt.Sprintf("the schema of %s[%d] is no object that can be read", req.toolsParam, i)
		}
		names[t.Name] = true
	}
	if n := req.sampling.MaxTokens; n != nil && (*n < 1 || *n > math.MaxInt32) {
		return fmt.Sprintf("max_tokens is not 1 to %d", math.MaxInt32)
	}
	if f := req.sampling.ResponseFormat; len(f) > 0 && f[rawjson.SkipSpace(f, 0)] != '{' {
		return "response_format is no object"
	}
	switch req.choice.Mode {
	case "", lathe.ChoiceAuto, lathe.ChoiceNone, lathe.ChoiceRequired, lathe.ChoiceFunction: // as in requests
	default:
		return "the mode of tool_choice is none of auto, none, required and function"
	}
	if (req.choice.Mode == lathe.ChoiceFunction) != (req.choice.Name != "") {
		return "a tool_choice has a name if it is a function, and else none"
	}
	return ""
}

func notReplayable(why string) *problem {
	return conflict("not_replayable", "The run cannot be run again: %s.", why)
}

func contentRemoved() *problem {
	return conflict(string(lathe.CodeContentRemoved), "The store has removed content of the run (tool_calling.retention), so it cannot be run again.")
}

// sampledAs returns a copy of the recorded sampling in which the members that given sets are replaced.
func sampledAs(recorded, given *lathe.Sampling) *lathe.Sampling {
	out := &lathe.Sampling{}
	for _, s := range []*lathe.Sampling{recorded, given} {
		if raw, err := json.Marshal(s); err == nil { // encoding a value of this type does not fail
			_ = json.Unmarshal(raw, out)
		}
	}
	return out
}
