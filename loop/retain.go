package loop

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/text"
)

// RetentionMode determines how much is retained of commentary: text that the model writes between its calls and that is not part of the
// answer.
type RetentionMode string

// The retention modes. The zero value has the effect of MetricsOnly.
const (
	MetricsOnly      RetentionMode = "metrics_only"      // no commentary: events of the run contain its size
	HashedSlice      RetentionMode = "hashed_slice"      // the length and a hash of its first 160 characters
	RedactedSnippets RetentionMode = "redacted_snippets" // its first 160 characters, as [secret.ScrubProse] returns them
	RawEphemeral     RetentionMode = "raw_ephemeral"     // all of it, as long as the session is in memory
)

// Retention says what a session retains of commentary and of the results of tools. The zero value has the default of each field.
type Retention struct {
	Mode RetentionMode // for commentary; "": MetricsOnly
	// StoreRaw says that results are retained unchanged.
	StoreRaw bool
	// MaxOutputBytes is the maximum size in bytes of a retained result; 0: 2,048. It has no effect if StoreRaw is set. The size includes
	// blobs and the text that says how many bytes were omitted. A value below 64 has the effect of 64.
	MaxOutputBytes int
}

const (
	defaultRetainedBytes = 2048
	minRetainedBytes     = 64 // enough for the marker with any numbers
)

// SessionHistory returns the messages that a session retains of the history of a run that has ended. It removes reasoning, the loop's own
// messages, answers that the loop rejected, and messages that are empty without their reasoning. It shortens commentary and results of
// tools as configured by opts; nil has the effect of the zero value. All other messages, and the argument text of calls, remain unchanged
// and in order.
//
// If msgs can be sent to a model, the result can be sent, too; calls without a result still have none. SessionHistory is idempotent. It
// does not change msgs; the result shares unchanged parts with it.
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
	return without(parts, func(p lathe.Part) bool { _, ok := p.(lathe.Reasoning); return ok })
}

// withoutReasoningMembers removes the vendor members that contain reasoning: those whose names begin with "reasoning" or "thinking".
func withoutReasoningMembers(extra []lathe.Member) []lathe.Member {
	return without(extra, func(m lathe.Member) bool {
		return strings.HasPrefix(m.Name, "reasoning") || strings.HasPrefix(m.Name, "thinking")
	})
}

// without returns list without the elements for which drop returns true. It copies list before a change.
func without[T any](list []T, drop func(T) bool) []T {
	if !slices.ContainsFunc(list, drop) {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), drop)
}

// isBlank reports whether parts are only blank text.
func isBlank(parts []lathe.Part) bool {
	return !slices.ContainsFunc(parts, func(p lathe.Part) bool {
		t, ok := p.(lathe.Text)
		return !ok || strings.TrimSpace(t.Text) != ""
	})
}

// partOfCall reports whether p is a call or a result. A history must contain both or neither.
func partOfCall(p lathe.Part) bool {
	switch p.(type) {
	case lathe.ToolCall, lathe.ToolResult:
		return true
	default:
		return false
	}
}

// compact shortens the results among parts. It copies parts before a change.
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
	return resultSize(r.Content, r.Blobs) <= o.MaxOutputBytes
}

// resultSize returns the size in bytes of a result of a tool.
func resultSize(content string, blobs []lathe.Blob) int {
	n := len(content)
	for i := range blobs {
		n += blobSize(&blobs[i])
	}
	return n
}

// cut returns the first bytes of s, cut at a character, followed by a marker with the number of omitted bytes.
func (o *Retention) cut(s string) string {
	if len(s) <= o.MaxOutputBytes {
		return s
	}
	const marker = "\n[%d of %d bytes left out]"
	head := text.Cut(s, o.MaxOutputBytes-len(fmt.Sprintf(marker, len(s), len(s))))
	return head + fmt.Sprintf(marker, len(s)-len(head), len(s))
}

// fitting returns the longest prefix of blobs whose size is at most room bytes.
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
