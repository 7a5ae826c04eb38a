package server

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	problems "github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/store"
)

// A toolRow is the JSON of a tool in a list.
type toolRow struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Effect      string          `json:"effect"`
	Origin      string          `json:"origin,omitempty"`
	Labels      []string        `json:"labels,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	// Advertised is set if runs of this key offer the tool to the model. The policy may withhold it.
	Advertised bool `json:"advertised"`
	// Policy is the decision of the policy on the tool before the arguments of a call are known: allow, ask or deny.
	Policy string `json:"policy,omitempty"`
	// Disabled is set if an operator has disabled the tool.
	Disabled *DisabledTool `json:"disabled,omitempty"`
	// Stats contains figures of the stored calls, if the request asks for them.
	Stats *callStats `json:"stats,omitempty"`
}

// specs returns the tools of this server that the caller may use, without hidden ones, sorted by name.
func (c *access) specs() []*lathe.ToolSpec {
	var out []*lathe.ToolSpec
	for _, s := range c.setup.tools() {
		if !s.Hidden && s.For(c.key.Name, c.key.Profile) && c.key.mayTool(s.Name) {
			out = append(out, s)
		}
	}
	return out
}

func (c *access) toolNames() []string { return namesOf(c.specs()) }

func namesOf(specs []*lathe.ToolSpec) (names []string) {
	for _, s := range specs {
		names = append(names, s.Name)
	}
	return names
}

// allow returns the names of the tools that a run of the caller may use; nil: all.
func (c *access) allow() []string { return slices.Clone(c.key.Tools) }

// listTools handles GET /api/tools. With stats=true each tool has figures of its stored calls.
func (h *catalogHandler) listTools(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	var calls *toolCalls
	switch v := r.URL.Query().Get("stats"); v {
	case "", "false":
	case "true":
		var p *problem
		if calls, p = h.toolCalls(r, c, ""); p != nil {
			return p
		}
	default:
		return badRequest("stats", "stats is true or false.")
	}
	rows := []toolRow{}
	offered := map[string]bool{}
	if c.setup.Tools != nil {
		for _, s := range c.setup.Tools.Advertised(c.run(), c.allow()) {
			offered[s.Name] = true
		}
	}
	for _, s := range c.specs() {
		row := h.toolRow(c, s, offered[s.Name])
		if calls != nil {
			row.Stats = calls.of(s.Name)
		}
		rows = append(rows, row)
	}
	body := struct {
		Data     []toolRow `json:"data"`
		Since    time.Time `json:"since,omitzero"`          // the start of the period of the figures
		Complete time.Time `json:"complete_since,omitzero"` // set if a limit was reached: earlier calls are not counted
	}{Data: rows}
	if calls != nil {
		body.Since, body.Complete = calls.since, calls.complete
	}
	return answer(w, body)
}

// toolRow returns the row of a tool that the caller may use.
func (co *core) toolRow(c *caller, s *lathe.ToolSpec, advertised bool) toolRow {
	row := toolRow{Name: s.Name, Description: s.Description, Effect: s.Effect.Declared(), Origin: s.Origin, Labels: s.Labels,
		Parameters: s.Schema, Advertised: advertised, Disabled: co.disabled(c, s.Name)}
	if p := c.setup.Policy; p != nil {
		row.Policy = p.Tool(c.run(), s).Decision.String()
	}
	if len(row.Parameters) == 0 {
		row.Parameters = json.RawMessage(`{"type":"object"}`)
	}
	return row
}

// tool returns a problem unless the caller may use the tool of that name. param is the member of the request that names it.
func (c *access) tool(name, param string) *problem {
	if s := c.ownTool(name); s != nil && !s.Hidden {
		if c.key.mayTool(name) {
			return nil
		}
		return forbidden("tool_forbidden", "This key may not use the tool %s.", name).WithParam(param)
	}
	return notFound("unknown_tool", "There is no such tool.%s", mean(name, c.toolNames())).WithParam(param)
}

// A toolAnswer is the response with the result of one call.
type toolAnswer struct {
	ToolCallID string     `json:"tool_call_id"`
	Tool       string     `json:"tool"`
	IsError    bool       `json:"is_error"`
	Code       lathe.Code `json:"code,omitempty"`
	Content    string     `json:"content"` // the text that a model would get
	// Blobs is the content that is not text, such as pictures, in the form of the content of events.
	Blobs []lathe.Blob `json:"blobs,omitempty"`
}

// callTool handles POST /api/tools/{name}/call: it executes one call with the runner that executes the calls of models,
// within the limits of the key.
func (h *catalogHandler) callTool(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	name := r.PathValue("name")
	given := struct {
		Arguments json.RawMessage `json:"arguments"`
	}{json.RawMessage("{}")}
	p := c.tool(name, "")
	if p == nil {
		p = readObject(c.body, &given, `{"arguments":{…}}`)
	}
	if p != nil {
		return p
	}
	run := c.run()
	run.RunID, run.RequestID = "call_"+c.requestID, c.requestID
	call := lathe.ToolCall{ID: "call_1", Name: name, Arguments: string(given.Arguments)}
	n := int64(0)
	result, err := c.setup.Tools.Execute(r.Context(), run, c.allow(), c.key.Limits, call, func(d event.Data) {
		if h.opts.Metrics != nil {
			n++
			h.opts.Metrics.Emit(r.Context(), event.Event{ID: n, Time: h.opts.Now(), RunID: run.RunID, RequestID: run.RequestID, Turn: 1, Data: d})
		}
	})
	if err != nil {
		return forbidden("approval_required", "Policy wants a person to approve the call, and no approver can be asked here.")
	}
	if result.Code == lathe.CodePolicyDenied {
		return forbidden(string(result.Code), "Policy does not allow the call.")
	}
	return answer(w, &toolAnswer{ToolCallID: result.CallID, Tool: name, IsError: result.IsError, Code: result.Code, Content: result.Content, Blobs: result.Blobs})
}

// maxPage is the maximum number of rows in one response.
const maxPage = 1000

// filter reads the query parameters of a list. The filter always has the principal of the caller, except for admin keys.
func (c *caller) filter(r *http.Request) (*store.RunFilter, *problem) {
	q := r.URL.Query()
	f := &store.RunFilter{Principal: c.key.Name, RunID: q.Get("run_id"), SessionID: q.Get("session_id"), Status: q.Get("status"), After: q.Get("after")}
	if c.key.isAdmin() {
		f.Principal = ""
	}
	var p *problem
	if f.Limit, p = number(q, "limit", 0, maxPage); p != nil {
		return nil, p
	}
	return f, nil
}

// number returns the query parameter as a number from 1 to most, or byDefault if the parameter is missing.
func number(q url.Values, name string, byDefault, most int) (int, *problem) {
	s := q.Get(name)
	if s == "" {
		return byDefault, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > most {
		return 0, badRequest(name, "%s wants a number from 1 to %d.", name, most)
	}
	return n, nil
}

// summaries handles GET /api/summaries: the model calls in the runs that the caller may list.
func (h *catalogHandler) summaries(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	if h.opts.Index == nil {
		return noStore()
	}
	f, p := c.filter(r)
	if p != nil {
		return p
	}
	_ = h.opts.Engine.Flush(r.Context(), "") // if the store fails, the list below reports it
	rows, next, err := h.opts.Index.ModelCalls(r.Context(), f)
	if err != nil {
		return h.storeFailed(c, err)
	}
	return answerList(w, rows, next)
}

// noStore returns the problem of a route that needs a store of runs on a server without one.
func noStore() *problem {
	return notFound("no_store", "This gateway keeps no runs: start it with --store.")
}

// storeFailed returns the problem for an error of the store, and logs unexpected errors. It returns nil if err is nil.
func (co *core) storeFailed(c *caller, err error) *problem {
	if code := lathe.CodeOf(err); code == lathe.CodeInvalidRequest {
		return badRequest("after", "The cursor is not one of this list.").WithCode(string(code))
	}
	return noAnswer(co.opts.Log, c, err)
}

// noAnswer returns the problem of a store that did not answer: 503 if the client may try again, otherwise 500. It returns nil
// if err is nil.
func noAnswer(log *slog.Logger, c *caller, err error) *problem {
	if err == nil {
		return nil
	}
	if code := lathe.CodeOf(err); code == lathe.CodeUnavailable || code == lathe.CodeTimeout {
		return problems.NotNow(err)
	}
	if p := problems.OfStore(err); p != nil {
		return p
	}
	log.Error("the store did not answer", "request_id", c.requestID, "code", lathe.CodeOf(err))
	return internalError("The store did not answer.")
}
