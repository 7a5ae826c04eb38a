package lathe

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"time"
)

// A Model is a language model. Both methods may be called from several goroutines at once.
//
// A Model may have optional methods. The package that uses such a method declares an interface for it, such as [loop.Relayer] and
// [loop.TokenCounter], and finds it with [ModelAs]. A decorator, which is a Model that wraps another one, passes on the optional methods of
// the wrapped model if it has the method
//
//	Unwrap() lathe.Model
//
// Generate is still called on the decorator. A decorator that changes answers must ensure that a [Relay] does not receive the unchanged
// bytes of the server: it must have a method Relays that returns "", or have no method Unwrap, or set Request.Relay to nil in the requests
// that it passes on.
//
// [loop.Relayer]: https://pkg.go.dev/github.com/lathe-run/lathe/loop#Relayer
// [loop.TokenCounter]: https://pkg.go.dev/github.com/lathe-run/lathe/loop#TokenCounter
type Model interface {
	// Describe returns the names and properties of the model for events and metrics. It must return the same value at each call.
	Describe() ModelInfo
	// Generate makes one model call while the caller ranges over the result. It must yield the deltas in order, then exactly one delta of
	// kind [DeltaFinish] or one error, then nothing. If the caller stops early, it must cancel the call and free its resources. The error
	// must be a *[Error]; if the model server has failed, it must wrap an *[UpstreamError].
	Generate(ctx context.Context, req *Request) iter.Seq2[Delta, error]
}

// ModelAs returns the first model that implements the interface T: model itself, else the model that its method Unwrap returns, and so on.
// ok is false if none of them implements T, or if model is nil.
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

// A ModelInfo describes a model for events and metrics. The zero value describes a model without a name.
type ModelInfo struct {
	Provider string // such as "openai" or "sim"
	Model    string // name of the model, as its server knows it
	Dialect  string // format in which the model writes calls as text, a name of package dialect; "" and "native": native tool calls
	Wire     Wire   // of its server; "": [WireOpenAIChat], or a model without a server
	Server   string // host and port of its server, such as "api.example.com:443"; "": it has none
	// WritesCalls says that the model's text is parsed for calls, because the model writes all calls as text or because some of its native
	// calls leak into the text.
	WritesCalls bool
	// NoTools says that the model cannot use tools: runs with this model have tool_use_mode disabled, whatever their settings.
	NoTools bool
	// NoParallel says that the model makes at most one call in a turn: runs with this model have parallel_tool_calls false, whatever their
	// settings.
	NoParallel bool
}

// A Request describes one model call. A [Model] must not change it, and must not use it after the call has ended.
type Request struct {
	Model    string // name of the model for the server; "": the model's own default
	Messages []Message
	Tools    []*ToolSpec // in the order in which they are sent
	// ToolChoice is sent if it is not the zero value and Tools is not empty.
	ToolChoice ToolChoice
	// ParallelToolCalls is sent if it is not nil and Tools is not empty.
	ParallelToolCalls *bool
	Sampling          Sampling
	// Overrides are further members of the JSON object that is sent to the server, unchanged and in order. A member with the name of
	// another field of Request, such as temperature, is sent in place of that field. Members named model, messages, tools, tool_choice,
	// response_format or stream are not sent.
	Overrides []Member
	// HostedTools are tools that the model's server executes itself, such as web_search. Each is a JSON object in the form of the server's
	// API, and is sent unchanged, after Tools.
	HostedTools []json.RawMessage
	// Betas are the beta features of Anthropic's API to use. Models on [WireMessages] send them in the header
	// anthropic-beta, others ignore them.
	Betas []string
	// APIVersion is the version of Anthropic's API to use; "": that of the headers in the model's options, else 2023-06-01. Models on
	// [WireMessages] send it in the header anthropic-version, others ignore it.
	APIVersion string
	// User is an opaque id of the end user. It is sent on wires that have a member for it; "": none.
	User string
	// RequestID is sent to the server as the header X-Request-Id; "": none.
	RequestID string
	// MaxPayloadBytes is the maximum size in bytes of a call that the model writes as text: the setting max_payload_bytes of the run. It
	// has no effect if it is 0 or above the model's own limit.
	MaxPayloadBytes int
	// TextCalls says how calls that the model writes as text are read. The zero value has the defaults.
	TextCalls struct {
		// Tools are the tools of the run, if the model may not call them in this turn. Calls of them are still recognized in the text,
		// so that a user does not see their markup; the caller ignores them.
		Tools []*ToolSpec
		// MaxArgsBytes is the setting max_tool_args_bytes: the maximum size in bytes of a call if MaxPayloadBytes is 0; 0: 200,000.
		MaxArgsBytes int
		// IgnoreOpenThoughts is the setting calls_in_open_thought: ignore. Calls at the end of a block of thinking that the model does
		// not close are then part of the reasoning and are not executed.
		IgnoreOpenThoughts bool
		// ReadsThinking says that the caller itself parses the marks of thinking in the text, such as </think>. Otherwise a closing mark
		// at the beginning of the text, which some servers leave there, is removed.
		ReadsThinking bool
	}
	// ClientCalls says that the client of the caller executes the calls of all Tools. A call that the server could not parse then fails the
	// model call, because Lathe cannot send the model a result for it.
	ClientCalls bool `json:"-"`
	// Relay, if not nil, receives the bytes of the server's answer. A model whose server does not speak Relay.Wire ignores it.
	Relay *Relay `json:"-"`
}

// A Wire names the HTTP API (the protocol) of a model server.
type Wire string

// The wires that this module implements.
const (
	WireOpenAIChat Wire = "openai_chat" // chat completions of OpenAI: POST /v1/chat/completions
	WireResponses  Wire = "responses"   // responses of OpenAI, and Open Responses: POST /v1/responses
	WireMessages   Wire = "messages"    // messages of Anthropic: POST /v1/messages
	WireGemini     Wire = "gemini"      // generateContent of Google: POST /v1beta/models/NAME:generateContent
)

// A Relay receives the bytes of a server's answer, so that a gateway can forward them to a client that speaks the same wire.
type Relay struct {
	// Wire is the wire of the client. A model whose server speaks another one must not call Take and must not send Request.
	Wire Wire
	// Stream says that the client requested a stream of events; false: it requested one body. The model must not call Take for an answer in
	// the other form.
	Stream bool
	// Request, if not nil, is the body of the client's request. The model sends it in place of the encoded [Request], unchanged
	// except for the model's name and the members that the model's configuration changes. It must be a JSON object
	// with the same meaning as the [Request], and must not change before the model call has ended.
	Request []byte
	// Opaque says that the client understands answers that no [Delta] can express, such as several choices or calls of custom tools.
	// Raw.Sound is then always true.
	Opaque bool
	// Take receives the bytes of the answer. The model calls it once for each event of a stream, with the bytes before the event, or once
	// with the whole body. It calls Take in order, on the goroutine that ranges over the result of Generate, and before it yields the
	// deltas of these bytes. It does not call Take for an error of the server.
	Take func(*Raw)
}

// Raw is a part of an answer as the server wrote it. It is valid only until [Relay].Take returns, since its memory is reused;
// [Raw.Clone] returns a copy to retain.
type Raw struct {
	Bytes []byte // one event of a stream with the bytes before it, or a whole body
	// Sound says that the bytes are valid on the wire, so that they may be forwarded to every client of that wire. If it is false, do not
	// forward these bytes or later ones, but encode the rest of the answer from Deltas.
	Sound bool
	// UsageOnly says that the bytes contain only token counts: forward them only to clients that requested these.
	UsageOnly bool
	// ID and Model are the id of the answer and the name of the model that the server has sent; "": none.
	ID, Model string
	// Finished says that the server has sent the finish reason, either in Bytes or before them.
	Finished bool
	Deltas   []Delta // what was parsed from Bytes
}

// Clone returns a copy that remains valid after [Relay].Take has returned. Bytes and the slice Deltas are copied. Values to which the
// deltas point are shared with r and must not be changed.
func (r *Raw) Clone() *Raw {
	c := *r
	c.Bytes, c.Deltas = slices.Clone(r.Bytes), slices.Clone(r.Deltas)
	return &c
}

// Sampling contains the options of text generation, with the names and meanings of chat completions. A nil or zero field is not sent. The
// values are not validated here. [Finish].Dropped lists the fields that the model's wire cannot express.
type Sampling struct {
	Temperature     *float64 `json:"temperature,omitempty"`
	TopP            *float64 `json:"top_p,omitempty"`
	MaxTokens       *int     `json:"max_tokens,omitempty"` // of the output of one model call
	Seed            *int64   `json:"seed,omitempty"`
	Stop            []string `json:"stop,omitempty"`             // texts that end the output
	ReasoningEffort string   `json:"reasoning_effort,omitempty"` // such as low, medium or high
	// ReasoningBudget is the maximum number of reasoning tokens, on wires that have such a limit.
	ReasoningBudget *int `json:"reasoning_budget,omitempty"`
	// ReasoningSummary requests a readable summary of the reasoning, on wires that hide it: auto, concise or detailed.
	ReasoningSummary string   `json:"reasoning_summary,omitempty"`
	TopK             *int     `json:"top_k,omitempty"`
	PresencePenalty  *float64 `json:"presence_penalty,omitempty"`
	FrequencyPenalty *float64 `json:"frequency_penalty,omitempty"`
	// ResponseFormat has the form of response_format in chat completions, whatever the wire of the model:
	// {"type":"json_schema","json_schema":{"name","schema","strict"}}.
	ResponseFormat json.RawMessage `json:"response_format,omitempty"`
}

// ToolChoice says whether the model may, must or must not call a tool. The zero value is not sent; servers then assume auto.
type ToolChoice struct {
	Mode string // ChoiceAuto, ChoiceNone, ChoiceRequired or ChoiceFunction
	Name string // of the tool, if Mode is ChoiceFunction
}

// The modes of a [ToolChoice].
const (
	ChoiceAuto     = "auto"     // the model may call tools
	ChoiceNone     = "none"     // the model must not call a tool
	ChoiceRequired = "required" // the model must call at least one tool
	ChoiceFunction = "function" // the model must call the tool ToolChoice.Name
)

// DeltaKind says which fields of a [Delta] are set.
type DeltaKind uint8

// The kinds of [Delta], each with the fields that it sets. The zero kind is not used.
const (
	DeltaText          DeltaKind = iota + 1 // Text: a piece of the answer
	DeltaReasoning                          // Text: a piece of the reasoning
	DeltaCommentary                         // Text: a piece of what the model writes between calls
	DeltaRefusal                            // Text: a piece of a refusal
	DeltaCallStart                          // Index, ID, Name; an empty ID or Name may be known later
	DeltaCallArgs                           // Index, Text: the next piece of the argument text
	DeltaCallEnd                            // Index, Incomplete; ID, if the start did not have it
	DeltaParseError                         // Code, Text: an excerpt of the call that could not be parsed, Bytes: its length
	DeltaRetry                              // Retry: an attempt failed before its first delta and is repeated
	DeltaFinish                             // Finish: the end of the turn
	DeltaReasoningData                      // Text: opaque data of the reasoning before it ([Reasoning].Data), Name: its Field, ID: its item
	// DeltaPart is a part of the message without text. Part is an [Opaque] or a [Blob], and Name is the wire that it was read from.
	DeltaPart
	// DeltaTextEnd ends a part of the text, because another one follows or because the part has members besides its text: Part is then
	// the complete [Text], and nil otherwise. Name is the wire. A consumer that needs only the text ignores it.
	DeltaTextEnd
)

// A Delta is one step of a model's answer. Kind says which other fields are set. Its strings may be retained.
type Delta struct {
	Kind       DeltaKind
	Deprecated bool // DeltaCallStart: the call is in a deprecated syntax
	Incomplete bool // DeltaCallEnd: the output ended within the call
	Unreadable bool // DeltaText: text of a call that could not be parsed; a DeltaParseError follows
	Index      int  // number of the call within the turn, from 0
	Text       string
	ID, Name   string // of the call, unless the kind says otherwise
	Code       Code
	Bytes      int
	Retry      *Retry
	Finish     *Finish
	Part       Part
}

// A Finish is the end of a model call that succeeded.
type Finish struct {
	Message Message // the whole message: the text and calls of all deltas
	// Reason is why the model stopped. If Message has calls it is FinishToolCalls, and only then, unless the server reported FinishLength
	// or FinishContentFilter.
	Reason            FinishReason
	RawReason         string // as the server wrote it
	Usage             Usage
	Model             string   // the model that answered, as the server names it; "": the server did not
	ResponseID        string   // the server's id of the answer; "": none
	UpstreamRequestID string   // the server's id of the request; "": none
	ProviderCost      *float64 // in US dollars, as the server reports it; nil: it does not
	Faults            []Fault  // faults of the answer that were tolerated
	// Dropped are the members of the request that the model's wire cannot express, as paths such as "sampling.seed" or
	// "messages[2].parts[0]". At most 32.
	Dropped []string
}

// A Fault is a kind of deviation from the protocol, such as a missing call id, with the number of its occurrences in one answer of a
// server. The answer was accepted all the same.
type Fault struct {
	Kind  string `json:"kind"` // from a fixed vocabulary, such as "id_missing" or "harmony_parse_error.header"
	Count int    `json:"count"`
}

// A Retry says that an attempt of a model call failed and that the next one starts after Wait. Err is the reason.
type Retry struct {
	Attempt int // the attempt that failed, from 1
	Err     *Error
	Wait    time.Duration
}

// FinishReason says why a model stopped, in the same words for all wires.
type FinishReason string

// The finish reasons.
const (
	FinishStop          FinishReason = "stop"           // the answer is complete, or a stop text was reached
	FinishToolCalls     FinishReason = "tool_calls"     // the model made calls
	FinishLength        FinishReason = "length"         // the limit on output tokens or the context window was reached
	FinishContentFilter FinishReason = "content_filter" // the server withheld the rest
	FinishUnknown       FinishReason = "unknown"        // the server gave another reason or none
)

// Usage counts tokens, of one model call or of several. All counts are as servers report them; 0: none, or not reported.
type Usage struct {
	InputTokens  int64 `json:"input_tokens"`
	OutputTokens int64 `json:"output_tokens"`
	TotalTokens  int64 `json:"total_tokens"`            // may differ from the sum of input and output: see Total
	CachedTokens int64 `json:"cached_tokens,omitempty"` // input that was read from the vendor's prompt cache, part of InputTokens
	// CacheWriteTokens is the input that was written to the vendor's prompt cache, part of InputTokens.
	CacheWriteTokens int64 `json:"cache_write_tokens,omitempty"`
	ReasoningTokens  int64 `json:"reasoning_tokens,omitempty"` // part of OutputTokens
}

// Total returns the tokens that limits count: the larger of TotalTokens and the sum of InputTokens and OutputTokens.
func (u Usage) Total() int64 { return max(u.TotalTokens, u.InputTokens+u.OutputTokens) }

// Add adds each count of v to that of u.
func (u *Usage) Add(v Usage) {
	u.InputTokens += v.InputTokens
	u.OutputTokens += v.OutputTokens
	u.TotalTokens += v.TotalTokens
	u.CachedTokens += v.CachedTokens
	u.CacheWriteTokens += v.CacheWriteTokens
	u.ReasoningTokens += v.ReasoningTokens
}
