package wire

import (
	"maps"
	"slices"
	"sync/atomic"

	"github.com/lathe-run/lathe"
)

// Limits of [Definitions].
const (
	// minDefinitions is the number of tools from which encoded definitions are kept: encoding fewer costs less than to look.
	minDefinitions = 8
	// MaxDefinitionsBytes bounds the encoded definitions that are kept; beyond it only those of the last request are.
	MaxDefinitionsBytes = 32 << 20
)

// Definitions keeps the encoded definitions of the server's tools from request to request, so that each is encoded once and then
// copied. A definition never changes, so that its address tells it. Tools that a client declares are not kept: each request has
// definitions of its own. The zero value is usable, by several goroutines at once; nil keeps nothing.
type Definitions struct{ kept atomic.Pointer[encoded] }

// encoded holds definitions of one form. It never changes.
type encoded struct {
	form  Strict
	texts map[*lathe.ToolSpec][]byte
	size  int // of the texts
}

// Append appends the definitions of the tools with commas between them: what encode appends for each, or a copy of it. encode may
// depend on the tool and on form only.
func (d *Definitions) Append(dst []byte, tools []*lathe.ToolSpec, form Strict, encode func(dst []byte, t *lathe.ToolSpec) []byte) []byte {
	var kept *encoded
	if d != nil && len(tools) >= minDefinitions {
		if kept = d.kept.Load(); kept == nil || kept.form != form {
			kept = &encoded{form: form}
		}
	}
	if kept != nil && len(kept.texts) > 0 {
		size := len(tools) // the commas, and what follows
		for _, t := range tools {
			size += len(kept.texts[t])
		}
		dst = slices.Grow(dst, size)
	}
	var added map[*lathe.ToolSpec][]byte
	for i, t := range tools {
		if i > 0 {
			dst = append(dst, ',')
		}
		if kept != nil {
			if text, ok := kept.texts[t]; ok {
				dst = append(dst, text...)
				continue
			}
		}
		start := len(dst)
		dst = encode(dst, t)
		if kept != nil && t.Owner == lathe.OwnerServer && t.Wire == "" {
			if added == nil {
				added = make(map[*lathe.ToolSpec][]byte, len(tools)-i)
			}
			added[t] = slices.Clone(dst[start:])
		}
	}
	if len(added) > 0 {
		d.kept.Store(kept.with(tools, added))
	}
	return dst
}

// with returns e with the texts added, or, if all would be too much, those of the tools only.
func (e *encoded) with(tools []*lathe.ToolSpec, added map[*lathe.ToolSpec][]byte) *encoded {
	next := &encoded{form: e.form, texts: added}
	total := e.size
	for _, text := range added {
		total += len(text)
	}
	if total <= MaxDefinitionsBytes {
		maps.Copy(next.texts, e.texts)
		next.size = total
		return next
	}
	for _, t := range tools {
		if text, ok := e.texts[t]; ok {
			next.texts[t] = text
		}
	}
	for _, text := range next.texts {
		next.size += len(text)
	}
	return next
}
