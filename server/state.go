package server

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/gateway/admission"
	problems "github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/store"
)

// State gives operators access to the state of the server and lets them change parts of it while the server runs. Its texts must contain no
// secrets; texts of MCP servers are untrusted. The methods may be called from several goroutines at once. Errors must have the code
// not_found, conflict, unavailable or invalid_request.
type State interface {
	Servers() []ServerState // the states of the MCP servers, sorted by name
	// Reconnect requests a new connection to an MCP server, and does not wait for the connection.
	Reconnect(server string) error
	// Accept accepts the current definition of an MCP server's tool. tool is [ToolState].Name. If the definition no longer has this digest,
	// Accept returns an error of code conflict.
	Accept(tool, digest string) error
	Models() []ModelState // the models of the configuration, sorted by name
	// Explain returns the policy's decision on a hypothetical call and what each rule says. It does not execute the call.
	Explain(call *PolicyCall) (*Explanation, error)
	// Settings returns the values of the configuration in use. The server sends them to admin keys only.
	Settings() ([]SettingState, error)
	// Audit verifies the hash chain of the whole audit log and returns its newest lines, newest first, at most limit. It returns nil if
	// there is no audit log.
	Audit(ctx context.Context, limit int) (*AuditState, error)
	Version() VersionState
}

// A ServerState is the state of an MCP server. The fields are those of the type Status of package tool/mcptool. The server sends Target,
// LastError, Stderr and Instructions to admin keys only.
type ServerState struct {
	Name      string    `json:"name"`
	State     string    `json:"state"`              // "starting", "ready", "backoff", "failed" or "closed"
	Since     time.Time `json:"since"`              // when the server entered State
	Required  bool      `json:"required"`           // whether the configuration says that the server is required
	Transport string    `json:"transport"`          // "stdio" or "http"
	Protocol  string    `json:"protocol,omitempty"` // version of MCP that the connection uses; "": not connected yet
	Software  string    `json:"software,omitempty"` // name and version of the server, as it reports them
	// Capabilities are the names of the capabilities that the server declares, sorted, such as tools and resources. The gateway uses tools
	// only.
	Capabilities []string `json:"capabilities,omitempty"`
	// Instructions are the server's own description of how to use it. They are untrusted and not sent to models.
	Instructions string      `json:"instructions,omitempty"`
	Problem      string      `json:"problem,omitempty"`    // kind of the last error; "": none
	NextTry      *time.Time  `json:"next_try,omitempty"`   // when the next connection is attempted; nil: none is planned
	Starts       int         `json:"starts"`               // number of connections so far that became ready
	Failures     int         `json:"failures"`             // number of consecutive failed attempts
	Target       string      `json:"target,omitempty"`     // program with its arguments, or URL
	LastError    string      `json:"last_error,omitempty"` // text of the last error of an attempt or a connection
	Stderr       string      `json:"stderr,omitempty"`     // the last text on the standard error of the server's program
	Tools        []ToolState `json:"tools"`                // the tools of the server, sorted by name
}

// A ToolState is the state of a tool of an MCP server. The fields are those of the type ToolStatus of package tool/mcptool. The server
// sends Definition and Accepted to admin keys only.
type ToolState struct {
	Name       string          `json:"name"`                        // name under which models see the tool
	Remote     string          `json:"remote_name"`                 // name that the MCP server uses
	State      string          `json:"state"`                       // "ready", "blocked", "refused", "excluded" or "missing"
	Reason     string          `json:"reason,omitempty"`            // why the tool is not offered to models; "": it is offered
	Changed    []string        `json:"changed,omitempty"`           // parts of the definition that differ from the accepted one
	Digest     string          `json:"digest,omitempty"`            // hash of the current definition, which [State].Accept requires
	Hidden     int             `json:"hidden_characters,omitempty"` // number of invisible characters removed from the definition
	Definition json.RawMessage `json:"definition,omitempty"`        // current definition, untrusted; nil: not known
	Accepted   json.RawMessage `json:"accepted,omitempty"`          // accepted definition; nil: none
	AcceptedAt *time.Time      `json:"accepted_at,omitempty"`       // when Accepted was accepted; nil: no definition was accepted
}

// A ModelState describes a model of the configuration.
type ModelState struct {
	Name     string           `json:"name"` // name of the model in the configuration and in requests
	Provider string           `json:"provider"`
	Model    string           `json:"model,omitempty"` // name that is sent to the model server
	Dialect  string           `json:"dialect"`         // dialect in which the model writes calls, as in [lathe.ModelInfo]
	Tools    bool             `json:"supports_tools"`
	Default  bool             `json:"default"` // whether requests that name no model use this one
	Limits   map[string]int64 `json:"limits"`  // limits of the model's runs, by configuration key; times in milliseconds
}

// A PolicyCall is a hypothetical tool call, for [State].Explain.
type PolicyCall struct {
	Tool      string            `json:"tool"`
	Arguments json.RawMessage   `json:"arguments"`
	Principal string            `json:"principal"` // principal of the run that makes the call
	Session   string            `json:"session_id"`
	Labels    map[string]string `json:"labels"` // labels of the run that makes the call
	Used      []string          `json:"used"`   // names of the tools that the run has called before this call
}

// An Explanation says how the policy decides on a call, and why.
type Explanation struct {
	Tool     string          `json:"tool"`
	Decision string          `json:"decision"`         // "allow", "ask" or "deny"
	Rule     string          `json:"rule"`             // name of the rule that decided
	Reason   string          `json:"reason,omitempty"` // reason that the policy gives, for people
	Rules    []PolicyFinding `json:"rules"`            // what each rule says, in the order of the policy
}

// A PolicyFinding says what one rule of the policy decides about a call.
type PolicyFinding struct {
	Rule     string `json:"rule"`
	Decision string `json:"decision"`
	Matched  bool   `json:"matched"`          // whether the rule applies to the call
	Decides  bool   `json:"decides"`          // whether the decision of the rule is that of the policy
	Source   string `json:"source,omitempty"` // configuration key of the rule, such as "policy.rules.NAME"
	Why      string `json:"why,omitempty"`    // why the rule applies or does not; may quote the arguments
}

// A SettingState is one value of the configuration in use. The value of a secret is "set" or "".
type SettingState struct {
	Key    string `json:"key"` // name of the setting, such as "serve.listen"
	Value  string `json:"value"`
	Origin string `json:"origin"` // where the value was set, such as a file or a variable
	// About is the documentation of the setting; "": none.
	About   string `json:"about,omitempty"`
	Default string `json:"default,omitempty"` // default of the setting, in the form of a configuration file
	Restart bool   `json:"restart,omitempty"` // whether a change takes effect only after a restart, not with a reload
}

// An AuditState contains the newest lines of the audit log and the result of its verification. If the hash chain is broken, Lines, Files
// and Data cover only what precedes the break.
type AuditState struct {
	OK     bool        `json:"ok"`               // whether the hash chain is intact
	Broken string      `json:"broken,omitempty"` // where and how the chain is broken; "": it is intact
	Lines  int64       `json:"lines"`            // number of lines in the whole log
	Files  int         `json:"files"`            // number of files of the log
	Head   string      `json:"head,omitempty"`   // hash of the last line; "": the chain is broken
	Data   []AuditLine `json:"data"`             // the newest lines, newest first
}

// An AuditLine is one line of the audit log, without arguments and results. A field that the line does not have is empty.
type AuditLine struct {
	N          int64     `json:"n"` // number of the line
	Time       time.Time `json:"time"`
	Kind       string    `json:"kind"`                // "begin", "rotated", "recovered", "event", "call", "removed" or "changed"
	Type       string    `json:"type,omitempty"`      // type of the event if Kind is "event"
	Principal  string    `json:"principal,omitempty"` // principal of the run
	RunID      string    `json:"run_id,omitempty"`
	ToolCallID string    `json:"tool_call_id,omitempty"` // of the tool call that the line is about
	Tool       string    `json:"tool,omitempty"`
	Decision   string    `json:"decision,omitempty"`
	Rule       string    `json:"rule,omitempty"` // policy rule that decided
	By         string    `json:"by,omitempty"`   // who decided about the call or made the change
	Status     string    `json:"status,omitempty"`
	Prev       string    `json:"prev,omitempty"` // hash of the line before it
}

// A VersionState identifies the version of the program and its store.
type VersionState struct {
	Version  string    `json:"version"`
	Revision string    `json:"revision,omitempty"` // source revision of the program
	Go       string    `json:"go"`                 // version of Go with which the program was built
	Started  time.Time `json:"started"`            // when the process began to serve
	Store    string    `json:"store"`              // kind of the store: "memory", "sqlite", "postgres" or "none"
	Node     string    `json:"node,omitempty"`     // name of this process among those that share the store
}

// A stateHandler serves the API for operators: MCP servers, pins, models, keys, usage, policy, audit log, configuration and
// health.
type stateHandler struct {
	*core
	usage *admission.Limiter
}

// A listBody is the JSON of one page of a list.
type listBody[T any] struct {
	Data []T    `json:"data"`
	Next string `json:"next,omitempty"` // the value of `after` for the next page; absent: this is the last page
	// Truncated is set if the list is longer than what was read.
	Truncated bool `json:"truncated,omitempty"`
}

// answerList writes one page of a list; next is the cursor of the page that follows.
func answerList[T any](w http.ResponseWriter, rows []T, next string) *problem {
	return answerPart(w, rows, next, false)
}

// answerPart writes one page of a list, which is truncated if there are rows that were not read.
func answerPart[T any](w http.ResponseWriter, rows []T, next string, truncated bool) *problem {
	return answer(w, &listBody[T]{nonNil(rows), next, truncated})
}

// nonNil returns list, or an empty list if it is nil, which is [] in JSON.
func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// servers returns the MCP servers that the caller may see. An admin key sees everything. Another key sees the servers whose
// tools it may use, without addresses and outputs.
func (c *access) servers() []ServerState {
	all := c.setup.State.Servers()
	if c.key.isAdmin() {
		return all
	}
	var out []ServerState
	for _, s := range all {
		s.Target, s.LastError, s.Stderr, s.Instructions = "", "", "", ""
		s.Tools = slices.DeleteFunc(withoutDefinitions(s.Tools), func(t ToolState) bool { return !c.key.mayTool(t.Name) })
		if len(s.Tools) > 0 || c.key.Tools == nil {
			out = append(out, s)
		}
	}
	return out
}

// withoutDefinitions returns a copy of the tools without their definitions; never nil.
func withoutDefinitions(tools []ToolState) []ToolState {
	out := append([]ToolState{}, tools...)
	for i := range out {
		out[i].Definition, out[i].Accepted = nil, nil
	}
	return out
}

// listServers handles GET /api/servers.
func (h *stateHandler) listServers(w http.ResponseWriter, _ *http.Request, c *caller) *problem {
	list := c.servers()
	for i := range list { // GET /api/pins has the definitions
		list[i].Tools = withoutDefinitions(list[i].Tools)
	}
	return answerList(w, list, "")
}

// reconnect handles POST /api/servers/{name}/reconnect.
func (h *stateHandler) reconnect(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	if err := c.setup.State.Reconnect(r.PathValue("name")); err != nil {
		return stateProblem(err, "There is no such server.")
	}
	h.opts.Log.Info("an MCP server is connected anew", "server", r.PathValue("name"), "by", c.decider())
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// stateProblem converts an error of a [State] to a problem. notFoundText is the message for code not_found.
func stateProblem(err error, notFoundText string) *problem {
	switch code := lathe.CodeOf(err); code {
	case lathe.CodeNotFound:
		return notFound(string(code), "%s", notFoundText)
	case lathe.CodeConflict:
		return conflict("definition_changed", "The server has changed the definition since it was shown: look at it again.")
	case lathe.CodeInvalidRequest:
		return badRequest("", "%s.", problems.Cause(err))
	default:
		return conflict("unavailable", "It cannot be done now: %s.", problems.Cause(err))
	}
}

// A pinRow is a tool of an MCP server with its current and its accepted definition.
type pinRow struct {
	Server string `json:"server"`
	ToolState
}

// listPins handles GET /api/pins: the tools of all MCP servers with their definitions.
func (h *stateHandler) listPins(w http.ResponseWriter, _ *http.Request, c *caller) *problem {
	var rows []pinRow
	for _, s := range c.setup.State.Servers() {
		for _, t := range s.Tools {
			rows = append(rows, pinRow{s.Name, t})
		}
	}
	return answerList(w, rows, "")
}

// accept handles POST /api/pins/{name}/accept. The digest in the body must be that of the definition which the operator was
// shown.
func (h *stateHandler) accept(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	var given struct {
		Digest string `json:"digest"`
	}
	if p := readObject(c.body, &given, `{"digest":"…"}`); p != nil {
		return p
	}
	if given.Digest == "" {
		return badRequest("digest", "Say the digest of the definition: it stands for what you were shown.")
	}
	if err := c.setup.State.Accept(r.PathValue("name"), given.Digest); err != nil {
		return stateProblem(err, "There is no such tool of an MCP server.")
	}
	h.opts.Log.Info("a definition was accepted", "tool", r.PathValue("name"), "digest", given.Digest, "by", c.decider())
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// A toolDetail is the JSON of one tool, with all that the caller may see of it.
type toolDetail struct {
	toolRow
	OutputSchema json.RawMessage  `json:"output_schema,omitempty"`
	Allowlist    []string         `json:"output_allowlist"` // the fields of the output that models get
	PolicyRule   string           `json:"policy_rule,omitempty"`
	PolicyReason string           `json:"policy_reason,omitempty"`
	Limits       map[string]int64 `json:"limits"` // limits of the tool itself, times in ms; absent: those of the runner
	Server       string           `json:"server,omitempty"`
	Pin          *ToolState       `json:"pin,omitempty"`
	LastCalls    []toolCallRow    `json:"last_calls,omitempty"` // calls in the stored runs of the caller, newest first
	Since        time.Time        `json:"since,omitzero"`       // the start of the period of stats
	Complete     time.Time        `json:"complete_since,omitzero"`
}

// showTool handles GET /api/tools/{name}.
func (h *stateHandler) showTool(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	name := r.PathValue("name")
	if p := c.tool(name, ""); p != nil {
		return p
	}
	s := c.specOf(name)
	if s == nil { // a reload has removed the tool since
		return c.tool(name, "")
	}
	run := c.run()
	isAdvertised := slices.ContainsFunc(c.setup.Tools.Advertised(run, c.allow()), func(t *lathe.ToolSpec) bool { return t.Name == name })
	d := toolDetail{toolRow: h.toolRow(c, s, isAdvertised), OutputSchema: s.OutputSchema, Allowlist: nonNil(s.Allowlist), Limits: map[string]int64{}}
	for key, n := range map[string]int64{"timeout_ms": s.Timeout.Milliseconds(), "concurrency": int64(s.Concurrency), "cache_ttl_ms": s.CacheTTL.Milliseconds()} {
		if n > 0 {
			d.Limits[key] = n
		}
	}
	if p := c.setup.Policy; p != nil {
		v := p.Tool(run, s)
		d.PolicyRule, d.PolicyReason = v.Rule, v.Reason
	}
	if c.setup.State != nil {
		d.Server, d.Pin = c.pinOf(name)
	}
	calls, p := h.toolCalls(r, c, name)
	if p != nil {
		return p
	}
	if calls != nil {
		d.Stats, d.LastCalls, d.Since, d.Complete = calls.of(name), calls.last, calls.since, calls.complete
	}
	return answer(w, &d)
}

// pinOf returns the MCP server of a tool, and the state of the tool; "" and nil if no server that the caller may see has it.
func (c *access) pinOf(tool string) (server string, pin *ToolState) {
	for _, s := range c.servers() {
		for i := range s.Tools {
			if s.Tools[i].Name == tool {
				server, pin = s.Name, &s.Tools[i]
			}
		}
	}
	return server, pin
}

// listModels handles GET /api/models: the models that the key may use, with their limits.
func (h *stateHandler) listModels(w http.ResponseWriter, _ *http.Request, c *caller) *problem {
	list := slices.DeleteFunc(c.setup.State.Models(), func(m ModelState) bool { return !c.key.mayModel(m.Name) })
	return answerList(w, list, "")
}

// A keyRow describes a key without its secret.
type keyRow struct {
	Name              string   `json:"name"`
	Role              role     `json:"role"`
	Models            []string `json:"models,omitempty"` // absent: all
	Tools             []string `json:"tools,omitempty"`  // absent: all
	Approve           []string `json:"approve"`
	RequestsPerMinute int      `json:"requests_per_minute"` // 0: unlimited
	Concurrency       int      `json:"concurrency"`         // 0: unlimited
	Active            int      `json:"active"`              // number of requests in progress
	MaxCost           float64  `json:"max_cost,omitempty"`  // limit of one run in US dollars
	MaxTokens         int64    `json:"max_tokens_total,omitempty"`
	Group             string   `json:"group,omitempty"`
	// Used is the usage of the key on this day and in this month, with its budgets.
	Used []budgetRow `json:"used,omitempty"`
}

// keysPage is the default number of keys in a page.
const keysPage = 100

// listKeys handles GET /api/keys: a page of the keys, sorted by name. An admin key sees all keys, another key only itself.
// The cursor is a name, so that a reload which adds or removes keys does not shift the following pages.
func (h *stateHandler) listKeys(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	q := r.URL.Query()
	limit, p := number(q, "limit", keysPage, maxPage)
	if p != nil {
		return p
	}
	page, next := c.keysAfter(q.Get("after"), limit)
	rows, bounds, day := []keyRow{}, []store.Bound{}, h.opts.Now().UTC().Format(time.DateOnly)
	active := h.usage.Active()
	for _, k := range page {
		rows = append(rows, keyRow{Name: k.Name, Role: k.role(), Models: k.Models, Tools: k.Tools, Approve: nonNil(k.Approve), RequestsPerMinute: k.RequestsPerMinute,
			Concurrency: k.Concurrency, Active: active[k.Name], MaxCost: max(0, k.Limits.MaxCost), MaxTokens: max(0, k.Limits.MaxTokensTotal), Group: k.Group})
		bounds = append(bounds, boundsOf(store.AccountKey, k.Name, day, k.Budget)...)
	}
	if h.opts.Ledger != nil {
		used, err := h.budgetRows(r.Context(), bounds)
		if err != nil {
			return h.storeFailed(c, err)
		}
		for i := range rows {
			rows[i].Used = used[2*i : 2*i+2] // budgetRows returns two rows for each key: day and month
		}
	}
	return answerList(w, rows, next)
}

// explain handles POST /api/policy/explain: the decision of the policy on a call. An admin key may name another principal.
func (h *stateHandler) explain(w http.ResponseWriter, _ *http.Request, c *caller) *problem {
	var given PolicyCall
	if p := readObject(c.body, &given, `{"tool":"…","arguments":{…}}`); p != nil {
		return p
	}
	switch {
	case len(given.Used) > maxUsed:
		return badRequest("used", "At most %d tools can be named.", maxUsed)
	case given.Principal != "" && given.Principal != c.key.Name && !c.key.isAdmin():
		return forbidden("admin_required", "Only an admin key asks for another principal.").WithParam("principal")
	}
	if p := c.tool(given.Tool, "tool"); p != nil {
		return p
	}
	given.Principal = cmp.Or(given.Principal, c.key.Name)
	if len(given.Arguments) == 0 {
		given.Arguments = json.RawMessage("{}")
	}
	if given.Arguments[rawjson.SkipSpace(given.Arguments, 0)] != '{' {
		return badRequest("arguments", "arguments must be an object.")
	}
	out, err := c.setup.State.Explain(&given)
	if err != nil {
		return stateProblem(err, "There is no such tool.")
	}
	out.Rules = nonNil(out.Rules)
	return answer(w, out)
}

const maxUsed = 100 // tools in used of a call to explain

// auditPage is the default number of lines of the audit log in a response.
const auditPage = 200

// showAudit handles GET /api/audit: the newest lines of the audit log.
func (h *stateHandler) showAudit(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	limit, p := number(r.URL.Query(), "limit", auditPage, maxPage)
	if p != nil {
		return p
	}
	a, err := c.setup.State.Audit(r.Context(), limit)
	if err != nil {
		h.opts.Log.Error("the audit log could not be read", "cause", err)
		return internalError("The audit log could not be read; the gateway's log says why.")
	}
	if a == nil {
		return notFound("no_audit_log", "This gateway keeps no audit log: audit.path in the configuration names one.")
	}
	a.Data = nonNil(a.Data)
	return answer(w, a)
}

// listSettings handles GET /api/config.
func (h *stateHandler) listSettings(w http.ResponseWriter, _ *http.Request, c *caller) *problem {
	rows, err := c.setup.State.Settings()
	if err != nil {
		h.opts.Log.Error("the configuration could not be shown", "cause", err)
		return internalError("The configuration could not be shown; the gateway's log says why.")
	}
	return answerList(w, rows, "")
}

// A healthCheck is the JSON of the state of one part of the server.
type healthCheck struct {
	Name    string `json:"name"`
	OK      bool   `json:"ok"`
	Message string `json:"message,omitempty"`
}

// health handles GET /api/health. It returns 200 with the state of each part even if the gateway is not ready.
func (h *stateHandler) health(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	out := struct {
		Ready bool `json:"ready"`
		*VersionState
		Checks []healthCheck `json:"checks"`
	}{Ready: true}
	requests := healthCheck{Name: "requests", OK: !h.draining.Load()}
	if !requests.OK {
		out.Ready, requests.Message = false, errDraining.Error()
	}
	out.Checks = append(out.Checks, requests)
	if h.opts.Ready != nil {
		store := healthCheck{Name: "store", OK: h.ready(r.Context()) == nil}
		if !store.OK {
			out.Ready, store.Message = false, unwritable
		}
		out.Checks = append(out.Checks, store)
	}
	if c.setup.State != nil {
		out.VersionState = new(c.setup.State.Version())
		for _, s := range c.setup.State.Servers() {
			out.Checks = append(out.Checks, serverChecks(&s)...)
		}
	}
	return answer(w, &out)
}

// serverChecks returns the state of an MCP server, and that of each of its tools which is not usable.
func serverChecks(s *ServerState) []healthCheck {
	server := healthCheck{"server " + s.Name, s.State == "ready", s.State}
	if !server.OK && s.LastError != "" {
		server.Message += ": " + s.LastError
	}
	checks := []healthCheck{server}
	for _, t := range s.Tools {
		if t.State == "blocked" || t.State == "refused" || t.State == "missing" {
			checks = append(checks, healthCheck{"tool " + t.Name, false, t.State + ": " + t.Reason})
		}
	}
	return checks
}
