package dialect

import (
	"strings"

	"github.com/lathe-run/lathe"
)

// A Collector joins the deltas of a [Parser] into one message. The zero value is ready to use. It must not be used by several goroutines
// at once.
type Collector struct {
	// Dialect is the name of the dialect; the Collector sets it on the calls of the message.
	Dialect string

	parts    []lathe.Part
	failures []Failure
	kind     lathe.DeltaKind // the kind of the text being joined; 0 if none exists
	bad      bool            // the text being joined belongs to an unreadable call
	text     strings.Builder
	call     int // index in parts of the open call
	args     strings.Builder
}

// A Failure is one unreadable call.
type Failure struct {
	Code    lathe.Code // why, such as [lathe.CodePayloadParseError]
	Name    string     // the name of the tool; "" if it was unreadable
	Excerpt string     // the first bytes of the call's text, at most 200
	Bytes   int        // the length of the whole text of the call
}

// Add adds the next delta. It ignores the kinds that a [Parser] does not return.
func (c *Collector) Add(d lathe.Delta) {
	switch d.Kind {
	case lathe.DeltaText, lathe.DeltaReasoning, lathe.DeltaCommentary:
		if c.kind != d.Kind || c.bad != d.Unreadable {
			c.flush()
			c.kind, c.bad = d.Kind, d.Unreadable
		}
		c.text.WriteString(d.Text)
	case lathe.DeltaCallStart:
		c.flush()
		c.args.Reset()
		c.call = len(c.parts)
		c.parts = append(c.parts, lathe.ToolCall{ID: d.ID, Name: d.Name, Dialect: c.Dialect, Deprecated: d.Deprecated, Incomplete: true})
	case lathe.DeltaCallArgs:
		c.args.WriteString(d.Text)
	case lathe.DeltaCallEnd:
		call := c.parts[c.call].(lathe.ToolCall)
		call.Arguments, call.Incomplete = c.args.String(), d.Incomplete
		if d.ID != "" {
			call.ID = d.ID
		}
		c.parts[c.call] = call
	case lathe.DeltaParseError:
		c.failures = append(c.failures, Failure{Code: d.Code, Name: d.Name, Excerpt: d.Text, Bytes: d.Bytes})
		if d.Index < 0 {
			c.flush()
			c.parts = append(c.parts, lathe.ToolCall{Name: d.Name, Arguments: d.Text, Dialect: c.Dialect, ParseError: d.Code})
			return
		}
		call := c.parts[c.call].(lathe.ToolCall)
		call.ParseError = d.Code
		c.parts[c.call] = call
	}
}

// AddAll adds deltas in order.
func (c *Collector) AddAll(deltas []lathe.Delta) {
	for _, d := range deltas {
		c.Add(d)
	}
}

// flush appends the joined text as a part of the message, if there is any.
func (c *Collector) flush() {
	text := c.text.String()
	c.text.Reset()
	switch c.kind {
	case lathe.DeltaText:
		c.parts = append(c.parts, lathe.Text{Text: text, Unreadable: c.bad})
	case lathe.DeltaReasoning:
		c.parts = append(c.parts, lathe.Reasoning{Text: text})
	case lathe.DeltaCommentary:
		c.parts = append(c.parts, lathe.Text{Text: text, Commentary: true})
	}
	c.kind, c.bad = 0, false
}

// Message returns the assistant message so far: text, reasoning and calls in the order of the deltas. An unreadable call is a
// [lathe.ToolCall] with its ParseError set. Text that is added later begins a new part. The caller must not change the parts.
func (c *Collector) Message() lathe.Message {
	c.flush()
	return lathe.Message{Role: lathe.RoleAssistant, Parts: c.parts}
}

// Failures returns the unreadable calls, in order. The caller must not change the slice.
func (c *Collector) Failures() []Failure { return c.failures }
