package dialect

import (
	"strings"

	"github.com/lathe-run/lathe"
)

// A Thinker is a [Parser] that reports the block of thinking that the end of the text left open. Test for it with a type
// assertion.
type Thinker interface {
	// OpenThought returns the text of that block from its first mark of a call on that is not quoted, once Flush has been called. It is ""
	// if there is none, if no tools were offered, or if it is longer than 1 MiB.
	OpenThought() string
	// ClosesAlone reports whether a mark closed a block of thinking that no mark had opened: the text before it, which was read as text,
	// is thinking if the prompt opened the block ([Options].ThinkingStartsOpen).
	ClosesAlone() bool
}

// ClosesAlone implements [Thinker].
func (r *reader) ClosesAlone() bool { return r.thought.lone }

func (r *reader) readsPrefix(on bool) { r.inPrefix = on }

// A thought is what a parser remembers of thinking.
type thought struct {
	text     []byte // of the open block, from the first mark of a call on that is not quoted
	mentions bool   // there is such a mark
	shuts    bool   // the block ends with a closing mark, unless a backtick follows
	lone     bool   // a mark closed a block that none had opened
}

// OpenThought implements [Thinker].
func (r *reader) OpenThought() string {
	if len(r.thought.text) > maxThoughtBytes || r.thought.shuts {
		return ""
	}
	return string(r.thought.text)
}

func openThought(p Parser) string {
	if t, ok := p.(Thinker); ok {
		return t.OpenThought()
	}
	return ""
}

func closesAlone(p Parser) bool {
	t, ok := p.(Thinker)
	return ok && t.ClosesAlone()
}

func (w wrapped) OpenThought() string { return openThought(w.Parser) }

func (w wrapped) ClosesAlone() bool { return closesAlone(w.Parser) }

func (a *autoParser) ClosesAlone() bool { return a.thought.lone || closesAlone(a.parser) }

func (a *autoParser) OpenThought() string {
	if a.parser == nil {
		return a.reader.OpenThought()
	}
	return openThought(a.parser)
}

// maxThoughtReads bounds how often a thought is read again after a mark that opened no call.
const maxThoughtReads = 16

// CallsInThought returns the calls in a thought in which the model's turn has ended, which the caller knows: models write
// calls before they close the thought, and end. Only the calls that the thought ends with are taken: one that anything but white space,
// closing marks and further calls follows was considered, and is text. Calls are those that can be read whole and name one of the tools
// of opts; a call that is quoted is none. The text of the thought stays reasoning.
func (d *Dialect) CallsInThought(thought string, opts *Options) []lathe.ToolCall {
	if thought == "" || opts == nil || len(opts.Tools) == 0 || opts.IgnoreOpenThoughts {
		return nil
	}
	o := *opts
	o.Prefix, o.ThinkingStartsOpen = "", false
	for range maxThoughtReads {
		p := d.NewParser(&o)
		deltas, _ := p.Flush(p.Append(nil, thought)) // calls that are cut off are none
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

// tailCalls returns the calls that m ends with: behind the last text that is not white space, and the last call that is not whole or names
// none of the tools.
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
