package lathe

import (
	"context"
	"encoding/json"
	"slices"
	"time"
)

// A Tool is something that a model may call. Only tool.Runner calls Call.
//
// args is a valid JSON object that satisfies the tool's schema. A failure that the model should
// see is an [Output] with IsError set; an error means that the call did not happen or that its
// outcome is not known, and its text is never shown to the model.
// Call may run on several goroutines at once. It must return soon after ctx is done.
type Tool interface {
	Spec() *ToolSpec // the same value at each call; it must not change
	Call(ctx context.Context, args json.RawMessage) (*Output, error)
}

// ToolSpec describes a tool. Name, Description and Schema are sent to the model.
type ToolSpec struct {
	Name         string          // ^[a-zA-Z0-9_-]{1,64}$
	Description  string          // what it does, for the model
	Schema       json.RawMessage // JSON Schema (2020-12 or draft 7) of the arguments, an object; nil: no arguments
	OutputSchema json.RawMessage // optional JSON Schema of the output
	Effect       Effect
	Owner        Owner
	// Allowlist names the fields of the output that the model may see, as dotted paths; `*` stands
	// for every key or element of one level, and the single entry `*` for everything. A tool without
	// an allowlist cannot be registered.
	Allowlist []string
	// Hidden tools are never sent to a model and answer `unknown_tool` when a model asks for them.
	Hidden bool
	// Target names the argument fields that say what the tool acts on. "Last result" of the
	// failure policy is kept per name and target.
	Target []string
	// Labels say what data the tool reads or sends, for policies: [LabelReadsPrivate] and the like, or
	// labels that the operator defines.
	Labels []string
	// SchemaVersion is an opaque version of Schema for events.
	SchemaVersion string
	Timeout       time.Duration // 0: the runner's tool_timeout
	CacheTTL      time.Duration // above 0 and ReadOnly: equal calls are answered from the cache
	Concurrency   int           // calls at once; 0: no limit of its own
	Rate          float64       // calls a second; 0: no limit
	Backend       string        // tools of one backend share BackendConcurrency
	// BackendConcurrency bounds the calls at once of all tools that name the same Backend; 0: no limit.
	BackendConcurrency int
	// Origin says where the tool comes from, for errors and listings: "go", "builtin", "mcp:files".
	Origin string
	// Principals are those whose runs have the tool; nil: all. For runs of other principals the tool is not registered.
	Principals []string
	// Extra keeps, of a tool that a client declared, the members of the wire's tool object that ToolSpec has no field
	// for (strict, cache_control, defer_loading), as they came. They are sent to models of the same wire. The member
	// `function`, if there is one, is an object of the further members of the wire's function object.
	Extra []Member `json:",omitempty"`
	// Aliases are names under which the client knows its tool, if they differ from Name. A call by one of them, or by a spelling of it
	// that fits no other tool of the client, is a call of the tool. They are not sent.
	Aliases []string `json:",omitempty"`
	// Disallowed is set for a tool that the tool choice of a client leaves out: its definition is sent, since prompt caches depend on the
	// definitions, and a call to it is answered `unknown_tool`. Recorded runs have it under its first name.
	Disallowed bool `json:"Barred,omitempty"`
	// Wire is the wire of Extra; "": [WireOpenAIChat].
	Wire Wire `json:",omitempty"`
	// UncheckedParts are the places and reasons of what the schemas do not have although the author of the tool wrote it: the tool's server
	// checks that, and not Lathe.
	UncheckedParts []string `json:"-"`
}

// For reports whether the runs of a principal have the tool. profile is [RunInfo].Profile; "": none.
func (s *ToolSpec) For(principal, profile string) bool {
	return s.Principals == nil || slices.Contains(s.Principals, principal) || profile != "" && slices.Contains(s.Principals, profile)
}

// The labels of tools that policies of this module know. In a run with tools of all three labels, an injected instruction
// can make the model give private data away.
const (
	LabelReadsPrivate   = "reads_private"   // shows the model what is not public
	LabelReadsUntrusted = "reads_untrusted" // shows the model what strangers may have written
	LabelCanExfiltrate  = "can_exfiltrate"  // sends the model's text to where others may read it
)

// Effect says what a tool does to the world. The zero value counts as [Writes].
type Effect uint8

// The effects.
const (
	EffectUndeclared Effect = iota
	ReadOnly                // changes nothing; may run again and side by side
	Idempotent              // may run again with the same idempotency key
	Writes                  // must not run again by itself
)

// String returns the effect's name in configuration and events.
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

// Declared returns the effect's name for lists of tools: "undeclared" for [EffectUndeclared], else that of String.
func (e Effect) Declared() string {
	if e == EffectUndeclared {
		return "undeclared"
	}
	return e.String()
}

// Owner says who executes a tool.
type Owner uint8

// The owners. A call to a tool of OwnerClient is handed to the caller and never executed here.
const (
	OwnerServer Owner = iota
	OwnerClient
)

// String returns the owner's name.
func (o Owner) String() string {
	if o == OwnerClient {
		return "client"
	}
	return "server"
}

// An Output is what a tool returns. Data is JSON; a tool that has only text returns a JSON string.
type Output struct {
	Data  json.RawMessage
	Blobs []Blob
	// IsError marks a failure that the model can act on. Code is then the code of the result
	// (empty: execution_failed) and Data is shown to the model under the allowlist.
	IsError bool
	Code    Code
	// RC is the return code of a WASM tool.
	RC int
	// Cause says why a call failed, for operators: logs, events and terminals show it, models do not see it. It must not
	// hold an argument, an output or a secret; 200 bytes of it are kept.
	Cause string
	// Run is set by a tool whose call started a run of its own.
	Run *ChildRun
}

// A ChildRun reports a run that a tool call started. Events name it, and what it spent counts against the limits of the
// run that made the call.
type ChildRun struct {
	RunID string
	Usage Usage
	Cost  float64  // in US dollars
	Tools []string // names of the tools that ran, for policies that follow what a run has read
}

// A CallMeta tells a tool about the call that it serves. It holds no secret.
type CallMeta struct {
	RunID, RequestID, SessionID string
	CallID                      string
	Tool                        string
	Principal, Profile          string // of the run that made the call
	// IdempotencyKey is the same for every attempt of one logical call.
	IdempotencyKey string
	Depth          int // of the run that made the call, from 0
}

type metaKey struct{}

// WithCallMeta returns a context that carries m.
func WithCallMeta(ctx context.Context, m *CallMeta) context.Context {
	return context.WithValue(ctx, metaKey{}, m)
}

// CallMetaFrom returns the CallMeta of the call that ctx belongs to, or nil. It must not be changed.
func CallMetaFrom(ctx context.Context) *CallMeta {
	m, _ := ctx.Value(metaKey{}).(*CallMeta)
	return m
}
