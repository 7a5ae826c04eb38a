package lathe

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"time"
)

// A Model streams one turn: deltas in order, then exactly one delta of kind [DeltaFinish] or one
// error, then nothing. A consumer that stops early cancels the turn and frees all it held.
// Both methods may be called from several goroutines at once.
//
// The error is a *[Error]; an upstream failure wraps a *[UpstreamError].
//
// A Model may have further abilities, such as [loop.Relayer] and [loop.TokenCounter]: interfaces of the package that uses
// them, which looks for them with [ModelAs]. A decorator keeps the abilities of the model that it wraps by having the method
//
//	Unwrap() lathe.Model
//
// Requests still go through the decorator. A decorator that changes answers must not pass the server's bytes on to a
// [Relay]: it has a method Relays that returns "", or no Unwrap, or it sets Request.Relay to nil in what it sends.
//
// [loop.Relayer]: https://pkg.go.dev/github.com/lathe-run/lathe/loop#Relayer
// [loop.TokenCounter]: https://pkg.go.dev/github.com/lathe-run/lathe/loop#TokenCounter
type Model interface {
	// Describe returns the names and properties of the model for events and metrics. The result does not change.
	Describe() ModelInfo
	Generate(ctx context.Context, req *Request) iter.Seq2[Delta, error]
}

// ModelAs returns the first model that implements T among model, the result of its Unwrap method, and so on.
func ModelAs[T any](model Model) (T, bool) {
	for model != nil {
		if t, ok := model.(T); ok {
			return t, true
		}
		w, ok := model.(interface{ Unwrap() Model })
		if !ok {
			break
		}
		model = w.Unwrap()
	}
	var none T
	return none, false
}

// A ModelInfo describes a model for events and metrics. The zero value is that of a model without a name.
type ModelInfo struct {
	Provider string // such as "openai", "sim"
	Model    string
	Dialect  string // "native" when empty
	Wire     Wire   // of its server; "": [WireOpenAIChat], or none at all
	Server   string // host and port of its server, such as "api.example.com:443"; "": it has none
	// WritesCalls says that calls are read from the model's text, all of them or those that leak into it.
	WritesCalls bool
	// NoTools says that the model cannot use tools: a run with it has tool_use_mode disabled.
	NoTools bool
	// NoParallel says that the model cannot ask for several calls in one turn.
	NoParallel bool
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
	// HostedTools are tools that the model's server executes itself (web_search), each an object as its wire has it. They are
	// sent after Tools, as they are.
	HostedTools []json.RawMessage
	// Betas are features of Anthropic's API that the caller asks for. Models on [WireMessages] send them in the header
	// anthropic-beta, others ignore them.
	Betas []string
	// APIVersion is the version of Anthropic's API that the caller asks for. Models on [WireMessages] send it in the header
	// anthropic-version, others ignore it. "" is the version of the codec.
	APIVersion string
	// User is an opaque end-user id that the wire may carry.
	User string
	// RequestID is sent upstream as X-Request-Id.
	RequestID string
	// MaxPayloadBytes (max_payload_bytes of the run) bounds a call that the model writes as text, in bytes. It has no effect if it
	// is 0, which means none, or above the model's own limit.
	MaxPayloadBytes int
	// TextCalls are the rules of the run for calls that the model writes as text. The zero value has the defaults.
	TextCalls struct {
		// Tools are the tools of the run, if the request has none or may call none: their calls are read all the same, and the caller
		// ignores them, so that no markup is shown.
		Tools []*ToolSpec
		// MaxArgsBytes (max_tool_args_bytes) bounds a call if MaxPayloadBytes does not, in bytes; 0: 200 000.
		MaxArgsBytes int
		// IgnoreOpenThoughts (calls_in_open_thought: ignore) leaves calls in a thought that is not closed a part of the thought.
		IgnoreOpenThoughts bool
		// ReadsThinking says that the caller reads the marks of thinking in the text. Otherwise a closing mark at the beginning of the
		// text, which some servers leave there, is no part of it.
		ReadsThinking bool
	}
	// ClientCalls says that the caller executes all of Tools. If the server reports that it could not parse a call, the answer then
	// fails, relayed or not: the model is not told, since its calls are not answered here.
	ClientCalls bool `json:"-"`
	// Relay, when set, receives the answer as the server wrote it. A model that does not speak Relay.Wire ignores it.
	Relay *Relay `json:"-"`
}

// A Wire names a protocol of model servers.
type Wire string

// The wires.
const (
	WireOpenAIChat Wire = "openai_chat" // chat completions of OpenAI: POST /v1/chat/completions
	WireResponses  Wire = "responses"   // responses of OpenAI, and Open Responses: POST /v1/responses
	WireMessages   Wire = "messages"    // messages of Anthropic: POST /v1/messages
	WireGemini     Wire = "gemini"      // generateContent of Google: POST /v1beta/models/NAME:generateContent
)

// A Relay receives the bytes of an answer, for a caller whose own client speaks the wire of the model's server.
type Relay struct {
	// Wire is the wire that the caller's client speaks. A model whose server speaks another one never calls Take,
	// and does not send Request.
	Wire Wire
	// Stream says whether the answer is requested as a stream of events or as one body. Take is not
	// called for an answer in the other form.
	Stream bool
	// Request, when set, is the body of the caller's own request. The model sends it in place of the encoded [Request], byte
	// for byte except the model's name and the members that the model's configuration changes. It must be a JSON object
	// with the same meaning as the [Request], and must not change before the turn is over.
	Request []byte
	// Opaque says that the caller reads forms that no [Delta] can express, such as several choices or the calls of custom
	// tools: all bytes of an answer count as sound.
	Opaque bool
	// Take receives each event of a stream, with the bytes before it, or a whole body. It is called in order, by
	// the goroutine that ranges over the turn, and before the deltas of the same bytes are yielded. It is not
	// called for an error of the server.
	Take func(*Raw)
}

// Raw is a part of an answer as its server wrote it. It is valid until Take returns, since its memory is reused to save an
// allocation for each event; [Raw.Clone] returns a copy to keep.
type Raw struct {
	Bytes []byte
	// Sound says that every client of the wire can read the bytes as they are. From the first part that is not sound on, the
	// caller encodes the answer from Deltas.
	Sound bool
	// UsageOnly says that the bytes hold nothing but the usage, which not every client has asked for.
	UsageOnly bool
	// ID and Model are the members `id` and `model` of the answer's events; "": the server sent none.
	ID, Model string
	// Finished says that the finish reason is in these bytes or in earlier ones.
	Finished bool
	Deltas   []Delta
}

// Clone returns a copy that shares no memory that is reused.
func (r *Raw) Clone() *Raw {
	c := *r
	c.Bytes, c.Deltas = slices.Clone(r.Bytes), slices.Clone(r.Deltas)
	return &c
}

// Sampling holds the options of text generation. A nil or zero field is not sent.
type Sampling struct {
	Temperature     *float64 `json:"temperature,omitempty"`
	TopP            *float64 `json:"top_p,omitempty"`
	MaxTokens       *int     `json:"max_tokens,omitempty"`
	Seed            *int64   `json:"seed,omitempty"`
	Stop            []string `json:"stop,omitempty"`
	ReasoningEffort string   `json:"reasoning_effort,omitempty"`
	// ReasoningBudget bounds the tokens of reasoning, on wires that count them.
	ReasoningBudget *int `json:"reasoning_budget,omitempty"`
	// ReasoningSummary asks for reasoning in readable form, on wires that hide it: auto, concise or detailed.
	ReasoningSummary string   `json:"reasoning_summary,omitempty"`
	TopK             *int     `json:"top_k,omitempty"`
	PresencePenalty  *float64 `json:"presence_penalty,omitempty"`
	FrequencyPenalty *float64 `json:"frequency_penalty,omitempty"`
	// ResponseFormat is the object of chat completions on every wire: {"type":"json_schema","json_schema":{"name","schema","strict"}}.
	ResponseFormat json.RawMessage `json:"response_format,omitempty"`
}

// ToolChoice is `auto`, `none`, `required`, or the function Name with mode `function`.
// The zero value is not sent.
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
	DeltaText          DeltaKind = iota + 1 // Text
	DeltaReasoning                          // Text
	DeltaCommentary                         // Text
	DeltaRefusal                            // Text
	DeltaCallStart                          // Index, ID, Name; ID and Name may be empty and be known only at the end
	DeltaCallArgs                           // Index, Text: the next piece of the argument text
	DeltaCallEnd                            // Index, Incomplete; ID, where it became known only now
	DeltaParseError                         // Code, Text: an excerpt of the call that could not be parsed, Bytes: its length
	DeltaRetry                              // Retry: an attempt failed before its first delta and is made again
	DeltaFinish                             // Finish
	DeltaReasoningData                      // Name: the field, ID: of the item, Text: the data that belongs to the reasoning before it
	// DeltaPart is a part that has no text: Part is an [Opaque] or a [Blob], Name the wire that it was read from.
	DeltaPart
	// DeltaTextEnd ends a text where the next one begins another part of the message, or where the text has further members:
	// Part is then the [Text] that ends, whole, and nil otherwise. Name is the wire. Clients of other wires see one text.
	DeltaTextEnd
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
	Part       Part
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
	// Dropped are the members of the request that the model's wire cannot express, as paths of the request's own form
	// ("sampling.seed", "messages[2].parts[0]"), at most 32.
	Dropped []string
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
	InputTokens  int64 `json:"input_tokens"`
	OutputTokens int64 `json:"output_tokens"`
	TotalTokens  int64 `json:"total_tokens"`
	CachedTokens int64 `json:"cached_tokens,omitempty"` // read from the vendor's cache, part of InputTokens
	// CacheWriteTokens are those that the vendor wrote to its cache, part of InputTokens.
	CacheWriteTokens int64 `json:"cache_write_tokens,omitempty"`
	ReasoningTokens  int64 `json:"reasoning_tokens,omitempty"` // part of OutputTokens
}

// Total returns the tokens that limits count: TotalTokens, or the sum of input and output where a server reports less.
func (u Usage) Total() int64 { return max(u.TotalTokens, u.InputTokens+u.OutputTokens) }

// Add adds v to u. The new TotalTokens is the sum of what Total returns for both.
func (u *Usage) Add(v Usage) {
	u.TotalTokens = u.Total() + v.Total()
	u.InputTokens += v.InputTokens
	u.OutputTokens += v.OutputTokens
	u.CachedTokens += v.CachedTokens
	u.CacheWriteTokens += v.CacheWriteTokens
	u.ReasoningTokens += v.ReasoningTokens
}
