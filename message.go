package lathe

import (
	"encoding/json"
	"strings"
)

// Role says who wrote a [Message].
type Role string

// The roles, as in chat completions.
const (
	RoleSystem    Role = "system"    // instructions of the application
	RoleDeveloper Role = "developer" // the same, for models that distinguish it from RoleSystem
	RoleUser      Role = "user"      // input of the user
	RoleAssistant Role = "assistant" // output of the model
	RoleTool      Role = "tool"      // the result of a tool call
)

// A Message is one entry of a conversation. It must not change after it was passed to a [Model] or added to a history, because providers
// cache its encoded form.
//
// A message of [RoleTool] has exactly one part, a [ToolResult]. Only an assistant message has [ToolCall] parts. Exactly one tool message
// answers each call: the tool messages follow the assistant message in the order of its calls, before any other message.
type Message struct {
	Role  Role
	Name  string // of the author; "": none
	Parts []Part // in the order of the text
	// Extra contains the members of the received message object that Lathe does not know, in their order. They are sent unchanged when the
	// message is sent again.
	Extra []Member
	// Wire is the API in which the message was received; "": [WireOpenAIChat]. Extra, here and in Parts, Blob.Raw, Opaque parts and
	// Reasoning.Data have the form of that API. They are not sent to models of another wire.
	Wire Wire
	// Synthetic marks a message that the loop itself has added, such as the request for a final answer. It is sent to the model within its
	// run, and is not part of the history of a session.
	Synthetic bool
}

// Size estimates the memory of the message in bytes: the length of its texts and data, and a constant for each part.
func (m *Message) Size() int {
	n := 128 + sizeOf(m.Extra)
	for _, p := range m.Parts {
		n += 64
		switch p := p.(type) {
		case Text:
			n += len(p.Text) + sizeOf(p.Extra)
		case Reasoning:
			n += len(p.Text) + len(p.Data)
		case Opaque:
			n += len(p.JSON)
		case Refusal:
			n += len(p.Text)
		case Blob:
			n += p.Size()
		case ToolCall:
			n += len(p.ID) + len(p.Name) + len(p.Arguments) + sizeOf(p.Extra)
		case ToolResult:
			n += len(p.CallID) + len(p.Content) + sizeOf(p.Extra)
			for i := range p.Blobs {
				n += p.Blobs[i].Size()
			}
		}
	}
	return n
}

func sizeOf(members []Member) (n int) {
	for i := range members {
		n += len(members[i].Name) + len(members[i].Value)
	}
	return n
}

// A Part is a piece of a message: [Text], [Reasoning], [Blob], [Refusal], [ToolCall], [ToolResult] or [Opaque].
// No other type implements it.
//
//sumtype:decl
type Part interface{ part() }

// Text is text that users may read, unless Unreadable is set.
type Text struct {
	Text string
	// Commentary marks text that the model writes before or between calls, such as the text on Harmony's commentary channel. It is not part
	// of the answer.
	Commentary bool
	// Unreadable marks the text of a call that could not be parsed. Models receive it in their history, but users do not see it.
	Unreadable bool
	// Extra contains the members of the received content part that Lathe does not know, such as cache_control, unchanged.
	Extra []Member
}

// Reasoning is the text in which a model reasons before its answer. It is not part of the answer.
//
// Some vendors send opaque data with the reasoning, such as a signature. They require that later requests contain the reasoning with its
// data, unchanged and before the text or call that followed it.
type Reasoning struct {
	Text string
	// Field is the JSON member in which the server sent the reasoning: "reasoning_content", "reasoning", "thinking", "redacted_thinking",
	// "encrypted_content" or "thoughtSignature"; "": the provider's default.
	Field string
	// Data is the vendor's opaque data, byte for byte; "": none. Reasoning with Data and an Entry is sent only to the model that
	// Entry names.
	Data string
	ID   string // id of the reasoning item that the server sent; "": it has none
	// Entry names the model that wrote the reasoning: it is the Entry in the Options of package provider; "": not known.
	Entry string
}

// Refusal is the text with which a model refuses to answer (OpenAI's `refusal`).
type Refusal struct{ Text string }

// A Blob is content that is not text, such as an image. Exactly one of URL and Data is set.
type Blob struct {
	MediaType string // IANA media type, such as image/png; may be "" if URL is set
	URL       string
	Data      []byte
	Name      string // file name; "": none
	Detail    string // OpenAI's `detail` of an image; "": none
	// Raw is the content part as it was received, if it has members that Lathe does not know; nil otherwise.
	Raw json.RawMessage
}

// Size estimates the memory of the blob in bytes: the length of URL, Data and Raw.
func (b *Blob) Size() int { return len(b.URL) + len(b.Data) + len(b.Raw) }

// A ToolCall is a model's request to call a tool.
type ToolCall struct {
	ID   string // unique within the message; "": the model call has not set it yet
	Name string // as the model wrote it
	// Arguments is the argument text, byte for byte as the model wrote it. It may be invalid JSON.
	Arguments string
	// Dialect is the format in which the model wrote the call as text, a name of package dialect; "": the server returned a native tool
	// call.
	Dialect string
	// Deprecated says that the call is in a deprecated syntax of its dialect.
	Deprecated bool
	// Recovered says that the call was found in the text of a model whose calls are otherwise native tool calls of its server.
	Recovered bool
	// Incomplete says that the model's output ended within the call. Such a call is never executed.
	Incomplete bool
	// ParseError is set for a call that the model wrote as text and that could not be parsed: it is the code of that error, and Name may be
	// "". A call that was parsed has ParseError "".
	ParseError Code
	// Extra contains the members of the received call that Lathe does not know, unchanged. In the form of chat completions, a member
	// `function` contains those of the call's function object.
	Extra []Member
}

// A ToolResult answers one [ToolCall].
type ToolResult struct {
	CallID  string // [ToolCall].ID
	Name    string // [ToolCall].Name
	Content string // exactly what the model receives
	Blobs   []Blob // content that is not text, for models that accept it
	IsError bool
	Code    Code // "" if IsError is false
	// Extra contains the members of the received content parts that Lathe does not know. Content then contains the text of all these parts.
	Extra []Member
}

// Opaque is a part of a kind that Lathe does not know. JSON is the part as it was received on the wire that [Message].Wire names. It is
// sent unchanged, and only to models of that wire.
type Opaque struct{ JSON json.RawMessage }

// A Member is one member of a JSON object. Value is its unparsed JSON value.
type Member struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
}

func (Text) part()       {}
func (Reasoning) part()  {}
func (Refusal) part()    {}
func (Blob) part()       {}
func (ToolCall) part()   {}
func (ToolResult) part() {}
func (Opaque) part()     {}

// System returns a system message with one text part.
func System(text string) Message { return textMessage(RoleSystem, text) }

// User returns a user message with one text part.
func User(text string) Message { return textMessage(RoleUser, text) }

// Assistant returns an assistant message with one text part.
func Assistant(text string) Message { return textMessage(RoleAssistant, text) }

func textMessage(role Role, text string) Message {
	return Message{Role: role, Parts: []Part{Text{Text: text}}}
}

// Text returns the message's text parts in order, joined without a separator. It omits commentary ([Text.Commentary]) and unreadable calls
// ([Text.Unreadable]), and is "" if nothing else remains.
func (m *Message) Text() string {
	var first string
	n, size := 0, 0
	for _, p := range m.Parts {
		if t, ok := p.(Text); ok && !t.Commentary && !t.Unreadable {
			if n == 0 {
				first = t.Text
			}
			n++
			size += len(t.Text)
		}
	}
	if n < 2 {
		return first
	}
	var b strings.Builder
	b.Grow(size)
	for _, p := range m.Parts {
		if t, ok := p.(Text); ok && !t.Commentary && !t.Unreadable {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}

// Calls returns the tool calls of the message in order, including incomplete calls and calls that could not be parsed; nil: none.
func (m *Message) Calls() (calls []ToolCall) {
	for _, p := range m.Parts {
		if c, ok := p.(ToolCall); ok {
			calls = append(calls, c)
		}
	}
	return calls
}
