package lathe

import (
	"encoding/json"
	"strings"
)

// Role says who speaks in a [Message].
type Role string

// The roles of the OpenAI wire. [RoleDeveloper] is system text for models that tell the two apart.
const (
	RoleSystem    Role = "system"
	RoleDeveloper Role = "developer"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// A Message is one entry of a conversation. Once it has been handed to a [Model] or put into a
// history it must not change: providers keep its encoded form and compare by identity.
//
// A message of [RoleTool] holds exactly one [ToolResult]. Only an assistant message holds
// [ToolCall] parts, and each of them is answered by exactly one tool message that follows it,
// in call order, before any other message.
type Message struct {
	Role  Role
	Name  string // optional name of the speaker
	Parts []Part
	// Extra keeps the members of the wire's message object that Lathe does not know, in the
	// order in which they came. They are sent again as they are.
	Extra []Member
	// Wire is the wire that the message was read from, "" standing for [WireOpenAIChat]: that of Extra, here and in
	// Parts, of Blob.Raw, of Opaque parts and of the data of Reasoning. Models of another wire are not sent these.
	Wire Wire
	// Synthetic marks a message that the loop made up (the request for a final answer). It is
	// sent to the model within its run and is not kept in the history of a session.
	Synthetic bool
}

// Size estimates the memory that the message holds, in bytes: its texts, and a fixed estimate for each part.
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
// The set is closed.
//
//sumtype:decl
type Part interface{ part() }

// Text is text shown to users. On an assistant message, Commentary marks text that was written
// before or between calls (Harmony's commentary channel).
//
// Unreadable marks the text of a call that could not be parsed. It is sent to models in their history and not shown to users.
type Text struct {
	Text       string
	Commentary bool
	Unreadable bool
	// Extra keeps the members of the wire's content part that Lathe does not know (cache_control), as they came.
	Extra []Member
}

// Reasoning is what a model thought aloud. Field names the wire member it came in
// ("reasoning_content", "reasoning", "thinking"); empty means the provider's default.
//
// Some vendors protect reasoning: they send opaque data with it, and require that it comes back unchanged and in its place,
// before the text or call that it led to. Data is that, byte for byte: the signature of Field "thinking", the data of
// "redacted_thinking" and "encrypted_content", and the signature of the next part for "thoughtSignature". Reasoning with
// Data is sent to a model only if Entry names it.
type Reasoning struct {
	Text  string
	Field string
	Data  string
	ID    string // of the wire's reasoning item, where it has one
	// Entry is the name of the model that wrote it, as its provider was given it; "": not known.
	Entry string
}

// Refusal is the text of a model that refuses (OpenAI's `refusal`).
type Refusal struct{ Text string }

// A Blob is content that is not text. Exactly one of URL and Data is set. Raw, when set, is the
// wire's own content part, kept because it has members that Lathe does not know.
type Blob struct {
	MediaType string // IANA media type, such as image/png; may be empty with URL
	URL       string
	Data      []byte
	Name      string // file name, where there is one
	Detail    string // OpenAI's `detail` of an image
	Raw       json.RawMessage
}

// Size estimates what the blob holds, in bytes.
func (b *Blob) Size() int { return len(b.URL) + len(b.Data) + len(b.Raw) }

// A ToolCall is a model's request to run a tool. Arguments is the argument text as the model
// wrote it, byte for byte; it may be invalid JSON, and nothing rewrites it.
type ToolCall struct {
	ID        string
	Name      string
	Arguments string
	// Dialect is the dialect the call was written in; empty means the wire's own tool_calls.
	Dialect string
	// Deprecated says that the call used a deprecated syntax of its dialect.
	Deprecated bool
	// Recovered says that the call was found in the text of a model whose server claims native calls.
	Recovered bool
	// Incomplete says that the call was cut off by the end of the model's output. It is never executed.
	Incomplete bool
	// ParseError, when set, is the code of a call written as text that could not be read. Name may be empty.
	ParseError Code
	// Extra keeps the members of the wire's call that Lathe does not know, as they came. The member `function`, if there
	// is one, is an object of the further members of the wire's function object.
	Extra []Member
}

// A ToolResult answers one [ToolCall]. Content is exactly what the model is sent.
type ToolResult struct {
	CallID  string
	Name    string // the name the model used
	Content string
	Blobs   []Blob // content that is not text, for models that take it
	IsError bool
	Code    Code // empty when IsError is false
	// Extra keeps the members of the wire's content parts that Lathe does not know. Content is all of their texts.
	Extra []Member
}

// Opaque is a part of a kind that Lathe does not know, as its wire has it. It is sent to models of that wire, in its place.
type Opaque struct{ JSON json.RawMessage }

// A Member is one member of a JSON object, kept raw.
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

// System makes a system message of one text part.
func System(text string) Message { return textMessage(RoleSystem, text) }

// User makes a user message of one text part.
func User(text string) Message { return textMessage(RoleUser, text) }

// Assistant makes an assistant message of one text part.
func Assistant(text string) Message { return textMessage(RoleAssistant, text) }

func textMessage(role Role, text string) Message {
	return Message{Role: role, Parts: []Part{Text{Text: text}}}
}

// Text returns the message's text parts joined, without commentary and without calls that could not be read. It
// does not copy when there is just one.
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

// Calls returns the tool calls of the message in order.
func (m *Message) Calls() []ToolCall {
	n := 0
	for _, p := range m.Parts {
		if _, ok := p.(ToolCall); ok {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	calls := make([]ToolCall, 0, n)
	for _, p := range m.Parts {
		if c, ok := p.(ToolCall); ok {
			calls = append(calls, c)
		}
	}
	return calls
}
