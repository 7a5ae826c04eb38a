package loop

import (
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// RunRetention returns the retention settings o, with defaults in place of zero fields, as [event.RunStarted] records them. o must not be
// nil.
func (o *Retention) RunRetention() *event.RunRetention {
	r := o.withDefaults()
	return &event.RunRetention{Mode: string(r.Mode), StoreRaw: r.StoreRaw, MaxOutputBytes: r.MaxOutputBytes}
}

// RetentionOf returns the retention settings that [event.RunStarted] records as r. r must not be nil.
func RetentionOf(r *event.RunRetention) *Retention {
	return &Retention{Mode: RetentionMode(r.Mode), StoreRaw: r.StoreRaw, MaxOutputBytes: r.MaxOutputBytes}
}

// KeptHistory returns the messages of a run that a session retains with the retention settings r: the result of [SessionHistory], or
// messages itself if r is nil. While a call after the last user message has no result, the messages after that user message are returned
// unchanged: a server may refuse the results of calls without the reasoning that it sent before these calls.
func KeptHistory(messages []lathe.Message, r *event.RunRetention) []lathe.Message {
	if r == nil {
		return messages
	}
	end := openTurn(messages)
	return append(SessionHistory(messages[:end], RetentionOf(r)), messages[end:]...)
}

// openTurn returns the index behind the last message of a user if a call after this message has no result, and the number of messages if
// all calls have one.
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

// Retention returns [Options].Retention with its defaults, as the loop records it in RunStarted; nil if the option is nil.
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

// CompactEvent returns the event as a store retains it with the settings o after the run has ended. It removes reasoning, and shortens
// commentary and results of tools as [SessionHistory] does, both in messages and in events. Excerpts of calls that could not be parsed
// count as commentary. Texts of users, the answer and the arguments of calls are retained.
//
// The mode [RawEphemeral] retains commentary only in memory, so for a store it has the effect of [MetricsOnly].
//
// CompactEvent adds the number of removed bytes to the field Removed of the result. It is idempotent and does not change e.
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
		if c.RawExcerpt != "" {
			c.RawExcerpt, _ = r.shorten(c.RawExcerpt)
		}
		e.Removed += max(0, len(d.RawExcerpt)-len(c.RawExcerpt))
		e.Data = &c
	case *event.ToolCallResult:
		kept := r.compact([]lathe.Part{lathe.ToolResult{Content: d.Result, Blobs: d.Blobs}})[0].(lathe.ToolResult)
		c := *d
		c.Result, c.Blobs = kept.Content, kept.Blobs
		e.Removed += resultSize(d.Result, d.Blobs) - resultSize(c.Result, c.Blobs)
		e.Data = &c
	default: // without content, or with content that is retained
	}
	e.Removed = max(e.Removed, 0) // a hash may be longer than the text that it replaces
	return e
}

func sizeOf(messages []lathe.Message) (n int) {
	for i := range messages {
		n += messages[i].Size()
	}
	return n
}
