package dialect

import (
	"strings"

	"github.com/lathe-run/lathe"
)

// A Thinker is a [Parser] that reports a block of thinking that is open at the end of the text. Test for it with a type assertion.
type Thinker interface {
	// OpenThought returns the end of the text of the open block of thinking, from the first mark of a call in it that is not quoted. It is
	// valid after Flush. It is "" if there is no open block or no such mark, if no tools were offered, or if the text exceeds 1 MiB.
	OpenThought() string
	// ClosesAlone reports whether the text has a closing mark of thinking without an opening mark. The parser has returned the text before
	// the mark as text, but it is thinking if the prompt opened the block: see [Options].ThinkingStartsOpen.
	ClosesAlone() bool
}

// ClosesAlone implements [Thinker].
func (r *reader) ClosesAlone() bool { return r.thought.closedAlone }

func (r *reader) setInPrefix(inPrefix bool) { r.inPrefix = inPrefix }

// A thought is the state of thinking that a parser needs for [Thinker].
type thought struct {
	text        []byte // text of the open block from its first unquoted mark of a call on
	mentions    bool   // the open block has an unquoted mark of a call
	closeHeld   bool   // heldClose of the prose is set: the text ends with a closing mark, which ends the block unless a backtick follows
	closedAlone bool   // a closing mark had no opening mark
}

// OpenThought implements [Thinker].
func (r *reader) OpenThought() string {
	if len(r.thought.text) > maxThoughtBytes || r.thought.closeHeld {
		return ""
	}
	return string(r.thought.text)
}

func (a *autoParser) ClosesAlone() bool {
	return a.thought.closedAlone || a.parser != nil && a.parser.ClosesAlone()
}

func (a *autoParser) OpenThought() string {
	if a.parser == nil {
		return a.reader.OpenThought()
	}
	return a.parser.OpenThought()
}

// maxThoughtReads limits how often CallsInThought parses a thought again, from behind a mark that opened no call.
const maxThoughtReads = 16

// CallsInThought returns the calls at the end of thought, in order. thought is the text of a block of thinking that the model did not
// close: some models write their calls there and end the turn. Only complete, unquoted calls of opts.Tools count, and only if nothing but
// white space, closing marks and further calls follows them. It returns nil if opts is nil, has no tools or sets IgnoreOpenThoughts.
func (d *Dialect) CallsInThought(thought string, opts *Options) []lathe.ToolCall {
	if thought == "" || opts == nil || len(opts.Tools) == 0 || opts.IgnoreOpenThoughts {
		return nil
	}
	o := *opts
	o.Prefix, o.ThinkingStartsOpen = "", false
	for range maxThoughtReads {
		p := d.NewParser(&o)
		deltas, _ := p.Flush(p.Append(nil, thought)) // truncated calls do not count
		c := Collector{Dialect: d.name}
		if chooser, ok := p.(Chooser); ok && chooser.Chosen() != "" {
			c.Dialect = chooser.Chosen()
		}
		c.AddAll(deltas)
		m := c.Message()
		calls := tailCalls(&m, o.Tools)
		if len(calls) > 0 || len(c.failures) == 0 {
			return calls
		}
		at := strings.Index(thought, c.failures[0].Excerpt)
		if at < 0 {
			return nil
		}
		thought = thought[at+1:]
	}
	return nil
}

// tailCalls returns the calls at the end of m: those after the last part that is neither blank text nor a complete call of one of tools.
func tailCalls(m *lathe.Message, tools []*lathe.ToolSpec) []lathe.ToolCall {
	first := len(m.Parts)
	for first > 0 {
		call, isCall := m.Parts[first-1].(lathe.ToolCall)
		text, isText := m.Parts[first-1].(lathe.Text)
		taken := isCall && call.ParseError == "" && !call.Incomplete && offered(tools, call.Name)
		if !taken && (!isText || strings.TrimSpace(text.Text) != "") {
			break
		}
		first--
	}
	tail := lathe.Message{Parts: m.Parts[first:]}
	return tail.Calls()
}
