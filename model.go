package lathe

import (
	"context"
	"encoding/json"
	"iter"
	"time"
)

// A Model streams one turn: deltas in order, then exactly one delta of kind [DeltaFinish] or one
// error, then nothing. A consumer that stops early cancels the turn and frees all it held.
// Generate may be called from several goroutines at once.
//
// The error is a *[Error]; an upstream failure wraps a *[UpstreamError].
type Model interface {
	Generate(ctx context.Context, req *Request) iter.Seq2[Delta, error]
}

// A ModelInfo names a model for events and metrics. Models may implement [Describer].
type ModelInfo struct {
	Provider string // such as "openai", "sim"
	Model    string
	Dialect  string // "native" when empty
	// WritesCalls says that calls are read from the model's text, all of them or those that leak into it.
	WritesCalls bool
	// NoTools says that the model cannot use tools: a run with it has tool_use_mode disabled.
	NoTools bool
	// NoParallel says that the model cannot ask for several calls in one turn.
	NoParallel bool
}

// A Describer is a [Model] that says what it is. It is an optional second interface.
type Describer interface {
	Describe() ModelInfo
}

// An Opener is a [Model] that serves the turns of one run better when it knows that they belong
// together: it keeps the encoded conversation and appends to it. It is an optional second interface.
// The Model that Open returns is used by one goroutine at a time, with requests whose Messages
// grow only at the end; closing it returns its buffers.
type Opener interface {
	Open() (m Model, closeFn func())
}

// A Request asks a [Model] for one turn. Models read it and do not keep it.
type Request struct {
	Model    string // empty: the model's own default
	Messages []Message
	Tools    []*ToolSpec // in the order in which they are sent
	// ToolChoice is sent only when it is not the zero value and there are tools.
	ToolChoice ToolChoice
	// ParallelToolCalls is sent when it is not nil and there are tools.
	ParallelToolCalls *bool
	Sampling          Sampling
	// Overrides are further members of the wire's request object, sent as they are, in order.
	// They cannot replace model, messages, tools, tool_choice, response_format or stream.
	Overrides []Member
	// User is an opaque end-user id that the wire may carry.
	User string
	// RequestID is sent upstream as X-Request-Id.
	RequestID string
	// Relay, when it is set, is shown the answer as the server wrote it. Only a [Relayer] looks at it.
	Relay *Relay `json:"-"`
}

// A Relay is shown the bytes of an answer, for a caller who speaks the wire of the model's server
// himself and hands them on.
type Relay struct {
	// Stream says how the answer is asked for: as a stream of events, or whole. An answer that
	// comes in the other form is not shown.
	Stream bool
	// Request, when set, is the body of the caller's own request. It is sent in place of the encoded request: byte for
	// byte, but for the model's name and what the model's set-up changes. It must be an object that says what the
	// [Request] says, and must not change before the turn is over.
	Request []byte
	// Opaque says that the caller reads forms which no [Delta] has, such as several choices or the calls of custom
	// tools: all bytes of an answer count as sound.
	Opaque bool
	// Take is shown each event of a stream with all that stands before it, or a whole body: in order, by
	// the goroutine that ranges over the turn, and before it is given the deltas of the same bytes. An
	// error of the server is not shown.
	Take func(*Raw)
}

// Raw is a part of an answer as its server wrote it. It is good until Take returns.
type Raw struct {
	Bytes []byte
	// Sound says that every client of the wire can read the bytes as they are. What is not sound, and all
	// that follows, is better told by its Deltas.
	Sound bool
	// UsageOnly says that they hold nothing but the usage, which not every client has asked for.
	UsageOnly bool
	// ID and Model are what the answer's events name themselves by; "" where they do not.
	ID, Model string
	// Finished says that they, or those before, say why the model stopped.
	Finished bool
	Deltas   []Delta
}

// A Relayer is a [Model] that shows the bytes of its server's answers to a [Relay]: what its caller is
// given is what the server said, unchanged. It is an optional second interface.
type Relayer interface {
	Relays() bool
}

// Sampling holds the options of text generation. A nil or zero field is not sent.
type Sampling struct {
	Temperature     *float64        `json:"temperature,omitempty"`
	TopP            *float64        `json:"top_p,omitempty"`
	MaxTokens       *int            `json:"max_tokens,omitempty"`
	Seed            *int64          `json:"seed,omitempty"`
	Stop            []string        `json:"stop,omitempty"`
	ReasoningEffort string          `json:"reasoning_effort,omitempty"`
	ResponseFormat  json.RawMessage `json:"response_format,omitempty"`
}

// ToolChoice is `auto`, `none`, `required`, or the function Name with mode `function`.
// The zero value means that nothing is said.
type ToolChoice struct {
	Mode string
	Name string
}

// The modes of a [ToolChoice].
const (
	ChoiceAuto     = "auto"
	ChoiceNone     = "none"
	ChoiceRequired = "required"
	ChoiceFunction = "function"
)

// DeltaKind says which fields of a [Delta] are set.
type DeltaKind uint8

// The kinds of [Delta]. The zero kind is not used.
const (
	DeltaText       DeltaKind = iota + 1 // Text
	DeltaReasoning                       // Text
	DeltaCommentary                      // Text
	DeltaRefusal                         // Text
	DeltaCallStart                       // Index, ID, Name; ID and Name may be empty and be known only at the end
	DeltaCallArgs                        // Index, Text: the next piece of the argument text
	DeltaCallEnd                         // Index, Incomplete; ID, where it became known only now
	DeltaParseError                      // Code, Text: what could not be read, Bytes: its whole length
	DeltaRetry                           // Retry: an attempt failed before its first delta and is made again
	DeltaFinish                          // Finish
)

// A Delta is one step of a model's turn. It is small and is passed by value; its strings may be kept.
type Delta struct {
	Kind       DeltaKind
	Deprecated bool // DeltaCallStart: written in a deprecated syntax
	Incomplete bool // DeltaCallEnd: cut off by the end of the output
	Unreadable bool // DeltaText: of a call that could not be read; its DeltaParseError follows
	Index      int  // of the call within the turn, from 0
	Text       string
	ID, Name   string
	Code       Code
	Bytes      int
	Retry      *Retry
	Finish     *Finish
}

// A Finish closes a turn that succeeded. Message is whole: complete calls with their argument text.
type Finish struct {
	Message Message
	// Reason is normalised: FinishToolCalls if and only if Message has calls, except that
	// FinishLength and FinishContentFilter stay.
	Reason            FinishReason
	RawReason         string // what the server said
	Usage             Usage
	Model             string // the model that the server says answered
	ResponseID        string
	UpstreamRequestID string
	ProviderCost      *float64 // in US dollars, where the server says it
	Faults            []Fault  // what had to be tolerated on the way
}

// A Fault counts one kind of damage that a provider tolerated. Kind is from a fixed vocabulary.
// The kinds harmony_parse_error.STAGE and harmony_unexpected_order.TYPE are the metrics of those names.
type Fault struct {
	Kind  string `json:"kind"`
	Count int    `json:"count"`
}

// A Retry says that an attempt of a model call failed and that the next one starts after Wait.
type Retry struct {
	Attempt int // the attempt that failed, from 1
	Err     *Error
	Wait    time.Duration
}

// FinishReason says why a model stopped, normalised.
type FinishReason string

// The finish reasons.
const (
	FinishStop          FinishReason = "stop"
	FinishToolCalls     FinishReason = "tool_calls"
	FinishLength        FinishReason = "length"
	FinishContentFilter FinishReason = "content_filter"
	FinishUnknown       FinishReason = "unknown"
)

// Usage counts tokens. Total is what the server said, else the sum of input and output.
type Usage struct {
	InputTokens     int64 `json:"input_tokens"`
	OutputTokens    int64 `json:"output_tokens"`
	TotalTokens     int64 `json:"total_tokens"`
	CachedTokens    int64 `json:"cached_tokens,omitempty"`
	ReasoningTokens int64 `json:"reasoning_tokens,omitempty"`
}

// Total returns the tokens that limits count: TotalTokens, or the sum of input and output where a server reports less.
func (u Usage) Total() int64 { return max(u.TotalTokens, u.InputTokens+u.OutputTokens) }

// Add adds v to u.
func (u *Usage) Add(v Usage) {
	u.InputTokens += v.InputTokens
	u.OutputTokens += v.OutputTokens
	u.TotalTokens += v.TotalTokens
	u.CachedTokens += v.CachedTokens
	u.ReasoningTokens += v.ReasoningTokens
}
