// Package wire defines the types and interfaces that the codecs of all wires share. A wire is the protocol of a model API: chat completions
// and Responses of OpenAI, Messages of Anthropic, generateContent of Google. A codec implements one or both of two interfaces: [Served]
// parses requests of clients and writes answers to them, [Upstream] writes requests to model servers and parses their answers. Each codec
// is a package below this one. They do no I/O and read no clock.
//
// All codecs translate to and from one internal form, [lathe.Request] and [lathe.Finish], so that a request received on one
// wire can be sent on any other. A member that the target wire cannot express is listed by its path, never dropped silently.
// A member that Lathe does not know is kept unchanged and sent only to models of the wire that it was received on.
//
// Encoding is deterministic: equal values give equal bytes, so that the prompt caches of vendors match from turn to turn.
// Append functions append to dst and return it. Raw JSON that callers put into requests, messages and tools must be valid.
package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/destination"
)

// Errors of an [Assembler] for answers that cannot be used.
var (
	// ErrIncomplete is the error of a stream that ended before the answer was complete.
	ErrIncomplete = errors.New("the answer broke off")
	// ErrNoAnswer is the error of a body that is not an answer of the wire, such as an HTML page.
	ErrNoAnswer = errors.New("the body is not an answer of this protocol")
	// ErrTooLarge is wrapped by the errors of answers that exceed a limit of [AssemblerOptions]: [ErrTooManyBytes] for
	// MaxBytes, [ErrTooManyCalls] for MaxCalls.
	ErrTooLarge     = errors.New("the answer is too large")
	ErrTooManyBytes = fmt.Errorf("%w: more than MaxBytes", ErrTooLarge)
	ErrTooManyCalls = fmt.Errorf("%w: more than MaxCalls", ErrTooLarge)
)

// MaxDropped is the largest number of paths in a list of members that a wire cannot express.
const MaxDropped = 32

// A ClientRequest is a client's request, parsed by a [Served] codec.
type ClientRequest struct {
	// Request is the request in the internal form. The field Wire of its messages and tools names the wire of the request,
	// which is also that of their unknown members.
	lathe.Request
	Stream bool
	// IncludeUsage requests the usage at the end of a stream, on wires where clients can choose.
	IncludeUsage bool
	Obfuscate    bool // pad events, so that their sizes do not reveal the lengths of their texts
	N            int  // number of answers requested; default 1
	// Unknown are the members of the body for which Request has no field, in their order in the body.
	Unknown []lathe.Member
	// Foreign is the error for the first value in the request that [lathe.Request] cannot represent; nil: there is no such
	// value. A request with an error here can be relayed to a server of the same wire, but not translated to another one.
	Foreign *APIError
	// Dropped are the paths of members that are neither read nor stored, such as "stream_options.x".
	Dropped []string
	// Hosted are the declared tools that are not functions, such as web_search. The codec does not add them to Request. The caller adds
	// those that the model server executes to Request.HostedTools, and ignores or refuses the others.
	Hosted []HostedTool
	// PreviousID is the id of the response that the request continues ("": none). Keep reports whether the server is to store the answer
	// under its id (nil: the server's default applies). Only Responses has these members.
	PreviousID string
	Keep       *bool
	// Names maps names of tools in Request to the client's names, for tools whose name or kind the internal form cannot
	// represent.
	Names map[string]ToolName
	// Approvals are the client's answers to approval requests that [Writer.AppendApproval] wrote into the last answer of the
	// conversation. Answered reports whether the input ends with such an answer, without a message after it. Only Responses
	// has them.
	Approvals []ApprovalAnswer
	Answered  bool
	// Updated is Sampling after the changes that items of the conversation make to it (nil if none exist). A server of the same wire
	// reads the items; for other models the caller replaces Sampling by Updated. Only Responses has such items.
	Updated *lathe.Sampling
	// Compact is set if the input ends with an item that requests a compaction of the conversation. That item is the last part of Messages.
	// Only Responses has it.
	Compact bool
	// Allowed are the names in Request of the tools that the model may call in this answer. nil allows all tools; a non-nil empty list
	// allows none. Other tools that the client declares are disallowed: see [lathe.ToolSpec].Disallowed.
	Allowed []string
	// Removed are the names of tools in Request that blocks of the conversation have removed. A server of the same wire reads the blocks;
	// for other models the caller removes the tools from Request. Only Messages has such blocks.
	Removed []string
	// Body is the body of the request, not copied. A [Writer] repeats some of its members if the wire requires that.
	Body []byte
}

// Drop adds a path to Dropped, which has at most [MaxDropped] paths.
func (r *ClientRequest) Drop(path string) {
	if len(r.Dropped) < MaxDropped {
		r.Dropped = append(r.Dropped, path)
	}
}

// ClientName returns the client's name of the tool with an internal name. r may be nil.
func (r *ClientRequest) ClientName(name string) string {
	if r != nil {
		if n, ok := r.Names[name]; ok {
			return n.Name
		}
	}
	return name
}

// A HostedTool is a tool that a client declares and that the client does not execute.
type HostedTool struct {
	Type string // such as "web_search"
	JSON json.RawMessage
	// Forced is set if the tool choice names the tool, or requires a call and there is no other tool.
	Forced bool
	// Disallowed is set if the tool choice excludes the tool. Its definition stays in its place, since prompt caches depend on it.
	Disallowed bool
	// Item is the path of a definition that is in an item of the input, where a server of the same wire reads it, such as
	// "input[3].tools[0]"; "": the definition is in the tools of the request.
	Item string
}

// DisallowedMember is a member that marks a hosted tool in [lathe.Request] as one that the model may not call in this answer. Codecs do not
// send it.
const DisallowedMember = "lathe_barred"

// A ToolName is the client's name of a tool.
type ToolName struct {
	Namespace, Name string
	// Custom is set for a tool whose input is text instead of JSON. In the internal form it is a function with one string
	// argument, `input`.
	Custom bool
}

// An APIError is an error response of an API: one that a model server returned, as a response or within a stream, or one that ParseRequest
// returned for a client's request. Each codec encodes it in the form of its wire.
type APIError struct {
	// Status is the HTTP status. For an error within a stream it is the error's code if that is a number, else 0.
	Status  int
	Message string // may quote the request: for the client, not for logs
	Type    string // such as "invalid_request_error"
	Code    string
	Param   string // path of the member of the request at fault, such as "messages[2].content"
	// RequestID identifies the request, on wires whose errors have such a member.
	RequestID string
	// RetryAfter is the number of seconds after which the server accepts a retry; 0: not known.
	RetryAfter float64
	// Details is a JSON object for programs, on wires whose errors have such a member; "": none.
	Details string
}

// A ServerCall is a tool call that this server executed, with its result, in the form that the client receives.
type ServerCall struct {
	ID, Name string
	Server   string // origin of the tool: the name of the MCP server, or "lathe"
	// Arguments is a JSON object. Output is the text of the result that the model received. Failed is set if the call failed.
	Arguments string
	Output    string
	Failed    bool
}

// An Approval is a call to a tool of this server that waits for an approval.
type Approval struct {
	ID, CallID, Name, Server, Arguments string
}

// An ApprovalAnswer is a client's answer to an [Approval].
type ApprovalAnswer struct {
	ID      string // id of the Approval
	Approve bool
	Reason  string
}

// An AnswerHead contains the data of an answer that is known before its first delta.
type AnswerHead struct {
	// ID is the id of the answer without a prefix, in letters, digits, _ and -. All ids within the answer are derived from it.
	ID      string
	Model   string // name by which the client requested the model
	Created int64  // Unix time in seconds
	Request *ClientRequest
	// Kept is set if the server stores the answer under its id.
	Kept bool
	// Whole is set if the client did not request a stream: see [Writer].
	Whole bool
	// Completed is the time at which the run ended, in Unix seconds; 0: Created is used. It is read when the answer ends.
	Completed int64
}

// A Served codec parses the requests of clients of one wire and writes the answers. Its methods may be called from several goroutines at
// once.
type Served interface {
	Wire() lathe.Wire
	// ParseRequest parses the body of a request. It refuses values that would change the meaning of the request, and stores unknown
	// members. Values that [lathe.Request] cannot represent are not an error: see ClientRequest.Foreign. The error is an *[APIError] with
	// status 400 that names the member at fault. The result refers to body, which must not be modified.
	ParseRequest(body []byte) (*ClientRequest, error)
	// NewWriter returns a Writer for one answer. It retains head.
	NewWriter(head *AnswerHead) Writer
	// AppendError appends the body of an error response.
	AppendError(dst []byte, e *APIError) []byte
}

// A Writer writes one answer, which may span several turns of a model. It is used by one goroutine at a time. The answer is valid on the
// wire for any order of the method calls before AppendFinish or AppendError: one item or block is open at a time, indexes are consecutive,
// and the answer ends exactly once.
//
// If AnswerHead.Whole is set, the methods append the body of an answer that is not streamed, with the same content as the events. All
// methods must then append to the same dst, and AppendKeepAlive and AppendError must not be called.
type Writer interface {
	// AppendStart appends the events that begin the stream, unless they were appended before. The other methods call it.
	AppendStart(dst []byte) []byte
	// AppendDelta appends the events for d: text, commentary, reasoning, reasoning data, a refusal, a piece of a call, a part of
	// the writer's wire, or the citations of a text. It ignores other deltas. The pieces of different calls may be mixed: see
	// [lathe.DeltaCallStart].
	AppendDelta(dst []byte, d lathe.Delta) []byte
	// AppendServerCall appends a call that this server executed, with its result. It appends nothing if the wire has no form
	// for it.
	AppendServerCall(dst []byte, c *ServerCall) []byte
	// AppendApproval appends a call of this server that waits for an approval. It appends nothing if the wire has no form for
	// it.
	AppendApproval(dst []byte, a *Approval) []byte
	// AppendCarrier appends a reasoning item whose opaque data is seal. Clients do not display such data and return it unchanged in their
	// next request. It appends nothing if the wire has no form for it.
	AppendCarrier(dst []byte, seal string) []byte
	// AppendFinish ends the stream: it closes open items, and appends what no delta has contained of the calls in f.Message, the finish
	// reason and the usage. extra are additional members of the last object.
	AppendFinish(dst []byte, f *lathe.Finish, extra []lathe.Member) []byte
	// AppendError ends the stream with an error. No other method may be called after it.
	AppendError(dst []byte, e *APIError) []byte
	// AppendKeepAlive appends bytes that clients ignore.
	AppendKeepAlive(dst []byte) []byte
	// Pass records an event of the model server that the caller relays to the client, so that events of the other methods can follow it. It
	// returns the bytes to send: those of raw, except that on Responses an empty output of the last event is filled. raw is valid only
	// during the call.
	Pass(raw *lathe.Raw) []byte
}

// A PlainWriter is embedded in a [Writer] whose wire has no forms for calls of this server, approvals and carriers.
type PlainWriter struct{}

// AppendServerCall appends nothing.
func (PlainWriter) AppendServerCall(dst []byte, _ *ServerCall) []byte { return dst }

// AppendApproval appends nothing.
func (PlainWriter) AppendApproval(dst []byte, _ *Approval) []byte { return dst }

// AppendCarrier appends nothing.
func (PlainWriter) AppendCarrier(dst []byte, _ string) []byte { return dst }

// EncodeOptions are the options of encoding a request to a model server. The zero value is valid.
type EncodeOptions struct {
	Stream       bool // request a stream
	IncludeUsage bool // request the usage at the end of the stream
	// ReasoningField is the member in which reasoning of the history is sent. "" omits the reasoning; "*" uses the member in which it was
	// received. Only chat completions uses it.
	ReasoningField string
	// MaxCompletionTokens sends Sampling.MaxTokens as max_completion_tokens.
	MaxCompletionTokens bool
	// TopK sends Sampling.TopK on chat completions, whose published schema has no such member.
	TopK bool
	// MaxTokens is the token limit to send if the request has none and the wire requires one; 0: 8192.
	MaxTokens int
	// Takes are the rules of the destination. Codecs use the columns that determine how a member is encoded. The caller applies the others
	// before: see [destination.Row.Fit] and [destination.Conversation].
	Takes destination.Row
	// Entry is the name of the model in the configuration. Reasoning that another entry wrote is not sent.
	Entry string
	// Strict determines whether strict is set on tools of the server. Gemini has no such member.
	Strict Strict
	// Definitions caches encoded tool definitions between requests; nil: they are encoded for each request.
	Definitions *Definitions
	// Shared, if not nil, allows the encoder to leave out tool definitions that other requests have in common: it sets *Shared to their
	// text and to their place in the head, or in the body of wires without a head.
	Shared *Shared
	// Without are features that the server has refused before and that are therefore not sent: see [Upstream.Refused].
	Without []string
	// Bound is the state of thinking that the destination binds to what precedes it; zero: nothing is known. The encoder leaves out blocks
	// that are no longer valid, and sets Before and Left. Only Messages has such thinking.
	Bound BoundRequest
}

// Omits reports whether feature is one of Without.
func (o *EncodeOptions) Omits(feature string) bool { return slices.Contains(o.Without, feature) }

// AssemblerOptions bound the size of an answer. A zero field has the default in its comment.
type AssemblerOptions struct {
	MaxCalls int // default 256
	MaxBytes int // bytes of text, reasoning, arguments and unknown members; default 32 MiB
}

// FeatureSystem is the feature of system messages after the leading ones. If Refused returns it, the caller applies [EncodeOptions].Takes
// without such messages.
const FeatureSystem = "system_turns"

// FeatureBound is the feature of thinking in the history that the server has bound to what preceded it, or that only its author can read.
// Refused returns it if what precedes the thinking has changed, or another model wrote it. It applies to one request only, because other
// conversations have not changed.
const FeatureBound = "bound_thinking"

// A Vendor says how the vendor of a wire is reached.
type Vendor struct {
	BaseURL   string // without a slash at the end
	KeyHeader string // name of the header for the API key
	KeyPrefix string // of the value of that header, such as "Bearer "
	// Header and Value are a fixed header of every request; "": none.
	Header, Value string
}

// An Upstream codec writes requests to model servers of one wire and parses their answers. Its methods may be called from several
// goroutines at once.
type Upstream interface {
	Wire() lathe.Wire
	// Path returns the path of a model call below the base URL, such as "/chat/completions".
	Path(model string, stream bool) string
	Vendor() Vendor
	// AppendRequest appends the body of a request. dropped are the paths of members that the wire cannot express, at most
	// [MaxDropped].
	AppendRequest(dst []byte, req *lathe.Request, opts *EncodeOptions) (body []byte, dropped []string)
	// AppendRelayed appends a client's request on this wire, body, unchanged except for the name of the model, the members of
	// req.Overrides and the changes that opts requires. body must be a request that ParseRequest accepted.
	AppendRelayed(dst, body []byte, req *lathe.Request, opts *EncodeOptions) []byte
	// HasForm reports whether a request can contain part p of message m. It is false only for images, audio and files, and for parts of
	// unknown types. See [Fit], which is applied before AppendRequest.
	HasForm(m *lathe.Message, p lathe.Part) bool
	// NewAssembler returns an Assembler for one answer. opts may be nil.
	NewAssembler(opts *AssemblerOptions) Assembler
	// ParseError parses the body of a response with a status of 400 or above or, if status is 0, an error event of a stream.
	ParseError(status int, body []byte) *APIError
	// Refused returns the feature that the server has refused with error e, such as "encrypted_content", if the request can be repeated
	// without it; otherwise "".
	Refused(e *APIError) string
}

// An Assembler assembles one answer from the events of a stream. It tolerates deviations from the specification of the wire and counts each
// as a [lathe.Fault]. A truncated answer is an error. The result does not depend on how the server splits the answer into events, and
// equals that of Complete for the same answer. An Assembler is used by one goroutine at a time.
type Assembler interface {
	// Append parses one event and appends its deltas to dst. event is the type of the event; "": it has none. The error is an
	// *[APIError] if the server reported one, and wraps [ErrTooLarge] if the answer exceeds a limit; both are final. Append
	// does not retain data.
	Append(dst []lathe.Delta, event string, data []byte) ([]lathe.Delta, error)
	// Done reports whether the server has marked the end of the stream.
	Done() bool
	// Finish returns the complete answer. It is called once, after the last Append. cleanEOF is set if the stream ended without a
	// connection error. The error is that of Append if there was one, or [ErrIncomplete] if the answer is incomplete.
	Finish(cleanEOF bool) (*lathe.Finish, error)
	// Complete parses the body of an answer that was not streamed. It is called instead of Append and Finish, and appends the deltas that
	// the answer would have in a stream.
	Complete(dst []lathe.Delta, body []byte) ([]lathe.Delta, *lathe.Finish, error)
	// Sound reports whether the appended events are valid for every client of the wire, so that they can be relayed unchanged.
	Sound() bool
	// Finished reports whether the finish reason was received.
	Finished() bool
	// Names returns the id and the model of the answer; "" for a value that was not received.
	Names() (id, model string)
}
