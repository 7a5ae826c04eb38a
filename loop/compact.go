package loop

import (
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// RunRetention returns the settings in the form in which the first event of a run records them.
func (o *Retention) RunRetention() *event.RunRetention {
	r := o.withDefaults()
	return &event.RunRetention{Mode: string(r.Mode), StoreRaw: r.StoreRaw, MaxOutputBytes: r.MaxOutputBytes}
}

// RetentionOf returns the settings that the first event of a run has recorded.
func RetentionOf(r *event.RunRetention) *Retention {
	return &Retention{Mode: RetentionMode(r.Mode), StoreRaw: r.StoreRaw, MaxOutputBytes: r.MaxOutputBytes}
}

// KeptHistory returns the messages to keep for later requests after a run that was started with r: [SessionHistory] with
// these settings, or messages itself if r is nil. If a call after the last message of a user has no result, the turn goes on, and its
// messages stay whole: a server may refuse the results of calls without the reasoning that it sent before these.
func KeptHistory(messages []lathe.Message, r *event.RunRetention) []lathe.Message {
	if r == nil {
		return messages
	}
	open := openTurn(messages)
	return append(SessionHistory(messages[:open], RetentionOf(r)), messages[open:]...)
}

// openTurn returns the index after the last message of a user, if a call from there on has no result; else the number of messages.
func openTurn(messages []lathe.Message) int {
	answered := map[string]bool{}
	open := false
	for i := len(messages) - 1; i >= 0; i-- {
		m := &messages[i]
		if m.Role == lathe.RoleUser && !m.Synthetic {
			if open {
				return i + 1
			}
			return len(messages)
		}
		for _, p := range m.Parts {
			switch p := p.(type) {
			case lathe.ToolResult:
				answered[p.CallID] = true
			case lathe.ToolCall:
				open = open || !answered[p.ID]
			default:
			}
		}
	}
	if open {
		return 0
	}
	return len(messages)
}

// Retention returns the retention settings that the loop records with its runs; nil: none.
func (l *Loop) Retention() *event.RunRetention { return l.retention }

func (o *Retention) withDefaults() Retention {
	r := *o
	if r.Mode == "" {
		r.Mode = MetricsOnly
	}
	if r.MaxOutputBytes == 0 {
		r.MaxOutputBytes = defaultRetainedBytes
	}
	r.MaxOutputBytes = max(r.MaxOutputBytes, minRetainedBytes)
	return r
}

// CompactEvent returns the form in which a store keeps e under the settings once e's run has ended. It drops reasoning and
// cuts commentary and results of tools, in messages and in events of their own, as [SessionHistory] does. Excerpts of calls
// that could not be parsed count as commentary. Texts of users, the answer and the arguments of calls stay.
//
// [RawEphemeral] keeps commentary as long as a session is in memory: in a store it counts as [MetricsOnly].
//
// Removed of the result is the number of bytes removed. CompactEvent is idempotent. It does not change e.
func (o *Retention) CompactEvent(e event.Event) event.Event {
	r := o.withDefaults()
	if r.Mode == RawEphemeral {
		r.Mode = MetricsOnly
	}
	switch d := e.Data.(type) {
	case *event.RunStarted:
		c := *d
		c.Messages = SessionHistory(d.Messages, &r)
		c.Retention = o.RunRetention()
		c.Retention.Applied = true
		e.Removed += sizeOf(d.Messages) - sizeOf(c.Messages)
		e.Data = &c
	case *event.ModelCallFinished:
		if d.Message == nil {
			return e
		}
		c, m := *d, *d.Message
		m.Parts, m.Extra = r.commentary(withoutReasoning(m.Parts)), withoutReasoningMembers(m.Extra)
		c.Message = &m
		e.Removed += d.Message.Size() - m.Size()
		e.Data = &c
	case *event.ToolCallParseError:
		c := *d
		switch r.Mode {
		case HashedSlice:
			if d.RawExcerpt != "" {
				c.RawExcerpt = hashedSlice(d.RawExcerpt)
			}
		case RedactedSnippets:
			c.RawExcerpt = snippet(d.RawExcerpt)
		default:
			c.RawExcerpt = ""
		}
		e.Removed += max(0, len(d.RawExcerpt)-len(c.RawExcerpt))
		e.Data = &c
	case *event.ToolCallResult:
		kept := r.compact([]lathe.Part{lathe.ToolResult{Content: d.Result, Blobs: d.Blobs}})[0].(lathe.ToolResult)
		c := *d
		c.Result, c.Blobs = kept.Content, kept.Blobs
		before, after := len(d.Result), len(c.Result)
		for i := range d.Blobs {
			before += blobSize(&d.Blobs[i])
		}
		for i := range c.Blobs {
			after += blobSize(&c.Blobs[i])
		}
		e.Removed += before - after
		e.Data = &c
	default: // no content, or what stays
	}
	e.Removed = max(e.Removed, 0) // a hash may be longer than what it stands for
	return e
}

func sizeOf(messages []lathe.Message) (n int) {
	for i := range messages {
		n += messages[i].Size()
	}
	return n
}
