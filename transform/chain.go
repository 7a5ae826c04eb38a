package transform

import (
	"math"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/callid"
)

// A List contains the names of the transforms for a model, by kind, in the order in which they are applied.
type List struct {
	Message    []string `json:"message,omitzero"`
	Tool       []string `json:"tool,omitzero"`
	Response   []string `json:"response,omitzero"`
	ToolCall   []string `json:"tool_call,omitzero"`
	ToolResult []string `json:"tool_result,omitzero"`
}

// Of returns the names that l lists for one kind, in order; nil: none, or kind is unknown. The caller must not change the slice.
func (l *List) Of(kind Kind) []string {
	switch kind {
	case Message:
		return l.Message
	case Tool:
		return l.Tool
	case Response:
		return l.Response
	case ToolCall:
		return l.ToolCall
	case ToolResult:
		return l.ToolResult
	}
	return nil
}

// Options configure [New]. The zero value is usable.
type Options struct {
	// MaxPayloadBytes is the maximum size in bytes of one call that is read from the model's text; 0 or less: the run's limit of the arguments
	// of a call, [lathe.Limits].MaxToolArgsBytes.
	MaxPayloadBytes int
	// ShowUnreadableCalls says that the text of calls that cannot be read is part of the answer.
	ShowUnreadableCalls bool
}

// A Chain applies the transforms of a list, in order. It is immutable and may be used by several goroutines at once.
type Chain struct {
	messages   []func(lathe.Message) lathe.Message
	tools      []func(*lathe.ToolSpec) *lathe.ToolSpec
	results    []func(string) string
	tagCalls   bool
	blankArgs  bool
	nineLetter bool
	maxPayload int  // bytes; 0: no bound of its own
	showBad    bool // show_unreadable_calls
}

// New returns a chain of the transforms in list; a repeated name counts once. opts may be nil. The error for an unknown name has the code
// invalid_config and suggests the nearest name.
func New(list List, opts *Options) (*Chain, error) {
	c := &Chain{}
	if opts != nil {
		c.showBad = opts.ShowUnreadableCalls
		c.maxPayload = max(opts.MaxPayloadBytes, 0)
		if c.maxPayload == math.MaxInt {
			c.maxPayload = 0
		}
	}
	seen := map[string]bool{}
	for _, kind := range Kinds() {
		for _, name := range list.Of(kind) {
			r, err := find(kind, name)
			if err != nil {
				return nil, lathe.CodeInvalidConfig.Wrap("transform", err)
			}
			if !seen[r.Name] {
				seen[r.Name] = true
				c.add(r)
			}
		}
	}
	return c, nil
}

func (c *Chain) add(r *row) {
	switch {
	case r.message != nil:
		c.messages = append(c.messages, r.message)
	case r.tool != nil:
		c.tools = append(c.tools, r.tool)
	case r.result != nil:
		c.results = append(c.results, r.result)
	case r.Name == tagCalls:
		c.tagCalls = true
	case r.Name == blankArgs:
		c.blankArgs = true
	case r.Name == nineLetter:
		c.nineLetter = true
	}
}

// Empty reports whether the chain changes nothing. A nil chain is empty.
func (c *Chain) Empty() bool {
	return c == nil || !c.changesMessages() && !c.changesAnswers() && len(c.tools) == 0
}

// changesMessages reports whether the chain changes messages of requests.
func (c *Chain) changesMessages() bool {
	return len(c.messages)+len(c.results) > 0 || c.changesAnswers()
}

// changesAnswers reports whether the chain changes answers.
func (c *Chain) changesAnswers() bool { return c.tagCalls || c.blankArgs || c.nineLetter }

// fillsOnly reports whether the chain does nothing but replace blank arguments by {}, which few conversations have.
func (c *Chain) fillsOnly() bool {
	return len(c.messages)+len(c.tools)+len(c.results) == 0 && !c.tagCalls && !c.nineLetter
}

// message returns the message in the form in which it is sent. ids are the short ids of the calls of the conversation so far.
func (c *Chain) message(m lathe.Message, ids *callid.Short) lathe.Message {
	for _, change := range c.messages {
		m = change(m)
	}
	if c.tagCalls {
		m = eachPart(m, makeReadable)
	}
	if c.blankArgs {
		m = eachPart(m, fillArguments)
	}
	if c.nineLetter {
		m = ids.Apply(m)
	}
	for _, change := range c.results {
		m = eachPart(m, func(r *lathe.ToolResult) bool {
			was := r.Content
			r.Content = change(was)
			return r.Content != was
		})
	}
	return m
}
