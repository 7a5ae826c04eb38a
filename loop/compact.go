package loop

import (
	"github.com/lathe-run/lathe"
)

// RunRetention returns the settings in the form in which the first event of a run records them.
func (o *Retention) RunRetention() *lathe.RunRetention {
	r := o.withDefaults()
	return &lathe.RunRetention{Mode: string(r.Mode), StoreRaw: r.StoreRaw, MaxOutputBytes: r.MaxOutputBytes}
}

// RetentionOf returns the settings that the first event of a run has recorded.
func RetentionOf(r *lathe.RunRetention) *Retention {
	return &Retention{Mode: RetentionMode(r.Mode), StoreRaw: r.StoreRaw, MaxOutputBytes: r.MaxOutputBytes}
}

// KeptHistory returns what is kept of messages for later requests, of a run that was started with r: all of them if r is
// nil.
func KeptHistory(messages []lathe.Message, r *lathe.RunRetention) []lathe.Message {
	if r == nil {
		return messages
	}
	return SessionHistory(messages, RetentionOf(r))
}

// Retention returns what the loop records with its runs; nil: nothing.
func (l *Loop) Retention() *lathe.RunRetention { return l.retention }

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

// CompactEvent returns an event of a run that has ended as a store keeps it under the settings: reasoning is dropped,
// commentary and results of tools are cut, in messages and in events of their own, as [SessionHistory] does it. Excerpts
// of calls that could not be read count as commentary. What users, the answer and the arguments of calls say stays.
//
// [RawEphemeral] keeps commentary as long as a session is in memory: in a store it counts as [MetricsOnly].
//
// Removed of the result says how many bytes went. Doing it twice is doing it once. e is not changed.
func (o *Retention) CompactEvent(e lathe.Event) lathe.Event {
	r := o.withDefaults()
	if r.Mode == RawEphemeral {
		r.Mode = MetricsOnly
	}
	switch d := e.Data.(type) {
	case *lathe.RunStarted:
		c := *d
		c.Messages = SessionHistory(d.Messages, &r)
		c.Retention = o.RunRetention()
		c.Retention.Applied = true
		e.Removed += sizeOf(d.Messages) - sizeOf(c.Messages)
		e.Data = &c
	case *lathe.ModelCallFinished:
		if d.Message == nil {
			return e
		}
		c, m := *d, *d.Message
		m.Parts, m.Extra = r.commentary(withoutReasoning(m.Parts)), withoutReasoningMembers(m.Extra)
		c.Message = &m
		e.Removed += d.Message.Size() - m.Size()
		e.Data = &c
	case *lathe.ToolCallParseError:
		c := *d
		switch r.Mode {
		case HashedSlice:
			if d.RawExcerpt != "" {
				c.RawExcerpt = hashedSlice(d.RawExcerpt)
			}
		case RedactedSnippets:
			c.RawExcerpt = secretWords().ReplaceAllString(firstCharacters(d.RawExcerpt, retainedSlice), "***")
		default:
			c.RawExcerpt = ""
		}
		e.Removed += max(0, len(d.RawExcerpt)-len(c.RawExcerpt))
		e.Data = &c
	case *lathe.ToolCallResult:
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
