package loop

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/text"
)

// RetentionMode says what a session keeps of commentary: the model's text between its calls, which is not part of the
// answer.
type RetentionMode string

// The retention modes. The zero value counts as MetricsOnly.
const (
	MetricsOnly      RetentionMode = "metrics_only"      // nothing: the events of the run have its size
	HashedSlice      RetentionMode = "hashed_slice"      // its length, and a hash of its first 160 characters
	RedactedSnippets RetentionMode = "redacted_snippets" // its first 160 characters, as [secret.ScrubProse] returns them
	RawEphemeral     RetentionMode = "raw_ephemeral"     // all of it, as long as the session is in memory
)

// Retention says what a session keeps of commentary and of the results of tools. The zero value is the
// default.
type Retention struct {
	Mode RetentionMode
	// StoreRaw keeps results whole.
	StoreRaw bool
	// MaxOutputBytes bounds what is kept of each result, in bytes, if StoreRaw is not set. Its blobs and the marker of what
	// was left out count; 0: 2 048. Less than 64 counts as 64.
	MaxOutputBytes int
}

const (
	defaultRetainedBytes = 2048
	minRetainedBytes     = 64 // holds the marker, whatever its numbers
)

// SessionHistory returns the messages that a session keeps of the history of a run that has ended. It drops reasoning, the
// loop's own messages, answers that these reject, and messages that are empty without their reasoning. It cuts commentary and results of tools as opts
// say; nil counts as the zero value. Everything else stays as it is and in order, the argument text of calls included.
//
// If msgs can be sent to a model, so can the result; calls without an answer stay without one. SessionHistory is
// idempotent. It does not change msgs; unchanged parts are shared with the result.
func SessionHistory(msgs []lathe.Message, opts *Retention) []lathe.Message {
	if opts == nil {
		opts = &Retention{}
	}
	o := opts.withDefaults()
	kept := make([]lathe.Message, 0, len(msgs))
	for i := range msgs {
		m := msgs[i]
		switch m.Role {
		case lathe.RoleAssistant:
			m.Parts, m.Extra = o.commentary(withoutReasoning(m.Parts)), withoutReasoningMembers(m.Extra)
			if isBlank(m.Parts) {
				continue
			}
		case lathe.RoleTool:
			m.Parts = o.compact(m.Parts)
		default:
		}
		if m.Synthetic && !slices.ContainsFunc(m.Parts, partOfCall) || rejected(msgs, i) {
			continue
		}
		kept = append(kept, m)
	}
	return kept
}

func withoutReasoning(parts []lathe.Part) []lathe.Part {
	isReasoning := func(p lathe.Part) bool { _, ok := p.(lathe.Reasoning); return ok }
	if !slices.ContainsFunc(parts, isReasoning) {
		return parts
	}
	return slices.DeleteFunc(slices.Clone(parts), isReasoning)
}

// withoutReasoningMembers drops the members in which servers send reasoning of their own form.
func withoutReasoningMembers(extra []lathe.Member) []lathe.Member {
	isReasoning := func(m lathe.Member) bool {
		return strings.HasPrefix(m.Name, "reasoning") || strings.HasPrefix(m.Name, "thinking")
	}
	if !slices.ContainsFunc(extra, isReasoning) {
		return extra
	}
	return slices.DeleteFunc(slices.Clone(extra), isReasoning)
}

// isBlank reports whether nothing but blank text is left of a model's message.
func isBlank(parts []lathe.Part) bool {
	return !slices.ContainsFunc(parts, func(p lathe.Part) bool {
		t, ok := p.(lathe.Text)
		return !ok || strings.TrimSpace(t.Text) != ""
	})
}

// partOfCall reports whether p is a call or its answer, of which neither goes without the other.
func partOfCall(p lathe.Part) bool {
	switch p.(type) {
	case lathe.ToolCall, lathe.ToolResult:
		return true
	default:
		return false
	}
}

// compact cuts the results among parts.
func (o *Retention) compact(parts []lathe.Part) []lathe.Part {
	own := false
	for i, p := range parts {
		r, ok := p.(lathe.ToolResult)
		if !ok || o.StoreRaw || o.fits(&r) {
			continue
		}
		r.Content = o.cut(r.Content)
		r.Blobs = fitting(r.Blobs, o.MaxOutputBytes-len(r.Content))
		if !own {
			parts, own = slices.Clone(parts), true
		}
		parts[i] = r
	}
	return parts
}

func (o *Retention) fits(r *lathe.ToolResult) bool {
	n := len(r.Content)
	for i := range r.Blobs {
		n += blobSize(&r.Blobs[i])
	}
	return n <= o.MaxOutputBytes
}

// cut keeps the head of s, cut at a rune, and says in its place how much was left out.
func (o *Retention) cut(s string) string {
	if len(s) <= o.MaxOutputBytes {
		return s
	}
	const marker = "\n[%d of %d bytes left out]"
	n := o.MaxOutputBytes - len(fmt.Sprintf(marker, len(s), len(s)))
	head := text.Cut(s, n)
	return head + fmt.Sprintf(marker, len(s)-len(head), len(s))
}

// fitting returns the blobs, from the first on, that room has place for.
func fitting(blobs []lathe.Blob, room int) []lathe.Blob {
	for i := range blobs {
		if room -= blobSize(&blobs[i]); room < 0 {
			return append([]lathe.Blob(nil), blobs[:i]...)
		}
	}
	return blobs
}

func blobSize(b *lathe.Blob) int {
	return len(b.MediaType) + len(b.URL) + len(b.Data) + len(b.Name) + len(b.Detail) + len(b.Raw)
}
