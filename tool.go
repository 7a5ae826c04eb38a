package lathe

import (
	"context"
	"encoding/json"
	"slices"
	"time"
)

// A Tool is a function that a model may call. Both methods may be called from several goroutines at once.
type Tool interface {
	// Spec returns the definition of the tool. It must return the same pointer at each call, and the definition must not change.
	Spec() *ToolSpec
	// Call executes the tool. tool.Runner calls it after all checks; other code should not. [CallMetaFrom] returns the ids of the call from
	// ctx. args is a JSON object that satisfies the tool's schema. Call must return soon after ctx is done: 100 ms later, the runner stops
	// waiting and gives the call a result.
	//
	// To report a failure to the model, return an [Output] with IsError, or an error made by tool.Fail, whose message the model receives.
	// Any other error means that the call was not executed, or that its outcome is not known. The model then receives only the code of the
	// error, or [CodeExecutionFailed] if that is not the code of a tool call.
	Call(ctx context.Context, args json.RawMessage) (*Output, error)
}

// ToolSpec is the definition of a tool. Only Name, Description, Schema and Extra are sent to the model.
type ToolSpec struct {
	Name         string          // ^[a-zA-Z0-9_-]{1,64}$
	Description  string          // what the tool does, for the model
	Schema       json.RawMessage // JSON Schema (2020-12 or draft 7) of the arguments, an object; nil: no arguments
	OutputSchema json.RawMessage // JSON Schema of the output; nil: any output
	Effect       Effect          // what a call may change
	Owner        Owner           // who executes a call
	// Allowlist names the fields of the output that the model may see, as dotted paths such as "user.name". In a path, `*` stands for every
	// key or element of one level. A list whose only entry is `*` allows the whole output. Allowlist is required, except for tools of
	// [OwnerClient].
	Allowlist []string
	// Hidden tools are not sent to models. A model that calls one gets the code unknown_tool.
	Hidden bool
	// Target names the members of the arguments that say what the tool acts on, such as "path". In a run with the setting
	// tool_failure_policy: fatal, a successful call makes up for an earlier failed call of the same tool only if these members are equal.
	Target []string
	// Labels say what data the tool reads or sends: [LabelReadsPrivate], [LabelReadsUntrusted], [LabelCanExfiltrate], or labels that the
	// operator defines. Policies use them.
	Labels []string
	// SchemaVersion is a version of Schema, in a form that the author of the tool chooses. Events contain it.
	SchemaVersion string
	Timeout       time.Duration // of one call; 0: Limits.ToolTimeout
	CacheTTL      time.Duration // if Effect is ReadOnly, equal calls are answered from a cache for this time; 0: never
	Concurrency   int           // maximum of calls at the same time; 0: no limit of its own. A further call waits until its deadline, then gets rate_limited
	Rate          float64       // maximum of calls a second, in bursts of one second; 0: no limit. A call beyond it gets rate_limited at once
	Backend       string        // name of the system that the tool depends on; "": none. Tools of one Backend share a circuit breaker
	// BackendConcurrency is the maximum number of concurrent calls to Backend, over all tools with that Backend; 0: this tool sets no
	// limit. To limit a Backend, set the number in the tool that is added to the set first. Further tools of the Backend must have the same
	// number or 0.
	BackendConcurrency int
	// Origin says where the tool comes from, for errors and listings, such as "go", "builtin" or "mcp:files".
	Origin string
	// Principals lists the principals and profiles (see [RunInfo]) whose runs may use the tool; nil: all runs. For other runs, the tool
	// does not exist.
	Principals []string
	// Extra contains the members of a client's tool definition for which ToolSpec has no field, such as strict or cache_control, unchanged.
	// They are sent only to models of the same wire. In the form of chat completions, a member `function` contains those of the
	// definition's function object.
	Extra []Member `json:",omitempty"`
	// Aliases are other names by which a client knows its tool; the model may find them in the client's prompts. Lathe accepts a call by an
	// alias as a call of this tool, also if it differs from the alias in case or punctuation, unless another tool of the client has such an
	// alias. Aliases are not sent to models.
	Aliases []string `json:",omitempty"`
	// Disallowed marks a tool that the client's tool choice excludes. Its definition is still sent, because prompt caches depend on it, but
	// a call of it gets the code unknown_tool. The JSON name is "Barred", as in recorded runs.
	Disallowed bool `json:"Barred,omitempty"`
	// Wire is the wire of Extra; "": [WireOpenAIChat].
	Wire Wire `json:",omitempty"`
	// UncheckedParts lists the parts of the author's schemas that were removed because Lathe cannot check them. Each entry has the place
	// and the reason. The server of the tool must check these parts.
	UncheckedParts []string `json:"-"`
}

// For reports whether runs with this principal and profile may use the tool: Principals is nil or contains principal or profile. profile is
// [RunInfo].Profile and may be "".
func (s *ToolSpec) For(principal, profile string) bool {
	return s.Principals == nil || slices.Contains(s.Principals, principal) || profile != "" && slices.Contains(s.Principals, profile)
}

// The labels of tools that policies of this module know. In a run with tools of all three labels, a prompt injection
// can make the model send private data to others.
const (
	LabelReadsPrivate   = "reads_private"   // its output may have data that is not public
	LabelReadsUntrusted = "reads_untrusted" // its output may have text of third parties, such as a web page
	LabelCanExfiltrate  = "can_exfiltrate"  // it sends text of the model to where third parties may read it
)

// Effect says what a call of a tool may change, and so whether it may be repeated. The zero value counts as [Writes].
type Effect uint8

// The effects of tools.
const (
	EffectUndeclared Effect = iota // not declared: counts as Writes
	ReadOnly                       // changes nothing; calls may be repeated and executed in parallel
	Idempotent                     // may be repeated with the same CallMeta.IdempotencyKey
	Writes                         // is never repeated automatically
)

// String returns the effect's name in configurations and events: "read_only", "idempotent" or "writes".
func (e Effect) String() string {
	switch e {
	case ReadOnly:
		return "read_only"
	case Idempotent:
		return "idempotent"
	default:
		return "writes"
	}
}

// Declared returns "undeclared" for [EffectUndeclared], and the result of String otherwise.
func (e Effect) Declared() string {
	if e == EffectUndeclared {
		return "undeclared"
	}
	return e.String()
}

// Owner says who executes a tool.
type Owner uint8

// The owners of tools.
const (
	OwnerServer Owner = iota // tool.Runner calls Tool.Call
	OwnerClient              // the call is returned to the caller of the run, which executes it
)

// String returns "server" or "client".
func (o Owner) String() string {
	if o == OwnerClient {
		return "client"
	}
	return "server"
}

// An Output is the result of a tool call.
type Output struct {
	Data  json.RawMessage // one JSON value; nil: null. A tool with plain text returns a JSON string
	Blobs []Blob          // images and other content that is not text, at most 8 MiB. Models receive them only if the allowlist has `*`
	// IsError marks a failure that the model can act on. The model then receives Code and the fields of Data that the allowlist names.
	IsError bool
	Code    Code // if IsError is set; "": [CodeExecutionFailed]
	// RC is the return code of a WebAssembly tool; 0: success, or another kind of tool.
	RC int
	// Cause says why a call failed, for operators. It appears in logs and events; models do not receive it. It must not quote an argument,
	// an output or a secret. Only its first 200 bytes are used.
	Cause string
	// Run must be set by a tool whose call has started a run; nil: it has started none.
	Run *ChildRun
}

// A ChildRun reports a run that an attempt of a tool call started. Its Usage and Cost count against the limits of the run that made the
// call.
type ChildRun struct {
	RunID string
	Usage Usage
	Cost  float64  // in US dollars
	Tools []string // names of the tools that the run has used, for policies that depend on what was read
}

// A CallMeta identifies the call that a tool executes. It contains no secrets.
type CallMeta struct {
	RunID, RequestID, SessionID string // SessionID is "" for a run without a session
	CallID                      string // unique within the run
	Tool                        string // registered name
	Principal, Profile          string // of the run, as in [RunInfo]
	// IdempotencyKey is the same for every attempt of one call, also after the process was restarted.
	IdempotencyKey string
	Depth          int // of the run, as in [RunInfo]
}

type metaKey struct{}

// WithCallMeta returns a context from which [CallMetaFrom] returns m, in place of the CallMeta that ctx has. m must not be changed afterwards.
func WithCallMeta(ctx context.Context, m *CallMeta) context.Context {
	return context.WithValue(ctx, metaKey{}, m)
}

// CallMetaFrom returns the CallMeta of the tool call that ctx belongs to, or nil if ctx belongs to none. The caller must not change it.
func CallMetaFrom(ctx context.Context) *CallMeta {
	m, _ := ctx.Value(metaKey{}).(*CallMeta)
	return m
}
