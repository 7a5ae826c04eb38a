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
	// minShared is the size from which the definitions of a list are not copied into a request: see [Shared].
	minShared = 16 << 10
	// maxShared is how many lists are kept for that; together they have at most MaxDefinitionsBytes.
	maxShared = 8
)

// Shared is a part of an encoded request that several requests have in common: Text belongs at the index At of the encoded head. It
// is never changed. Without a text there is no such part.
type Shared struct {
	At   int
	Text []byte
}

// Definitions keeps the encoded definitions of the server's tools from request to request, so that each is encoded once and then
// copied. A definition never changes, so that its address tells it. Tools that a client declares are not kept: each request has
// definitions of its own. The zero value is usable, by several goroutines at once; nil keeps nothing.
type Definitions struct {
	kept  atomic.Pointer[encoded]
	lists atomic.Pointer[[]sharedList] // the newest first
}

// sharedList is the text of a list of tools in one form.
type sharedList struct {
	tools []*lathe.ToolSpec
	form  Strict
	text  []byte
}

// encoded holds definitions of one form. It never changes.
type encoded struct {
	form  Strict
	texts map[*lathe.ToolSpec][]byte
	size  int // of the texts
}

// AppendShared is [Definitions.Append] for a request that can share its definitions with others. The first request with a list appends
// them. If they are all of the server's own tools and have 16 KiB or more, it also keeps their text: later requests with the list and
// form append nothing and set *shared to the text. shared may be nil.
func (d *Definitions) AppendShared(dst []byte, shared *Shared, tools []*lathe.ToolSpec, form Strict, encode func(dst []byte, t *lathe.ToolSpec) []byte) []byte {
	if d == nil || shared == nil || len(tools) < minDefinitions {
		return d.Append(dst, tools, form, encode)
	}
	var kept []sharedList
	if p := d.lists.Load(); p != nil {
		kept = *p
	}
	for i := range kept {
		if l := &kept[i]; l.form == form && slices.Equal(l.tools, tools) {
			*shared = Shared{len(dst), l.text}
			return dst
		}
	}
	start := len(dst)
	dst = d.Append(dst, tools, form, encode)
	size := len(dst) - start
	if size < minShared || size > MaxDefinitionsBytes || slices.ContainsFunc(tools, func(t *lathe.ToolSpec) bool { return !keeps(t) }) {
		return dst
	}
	next := []sharedList{{slices.Clone(tools), form, slices.Clone(dst[start:])}}
	for _, l := range kept {
		if size += len(l.text); size > MaxDefinitionsBytes || len(next) == maxShared {
			break
		}
		next = append(next, l)
	}
	d.lists.Store(&next) // a list that another goroutine stores at the same time may be lost: it is made again
	return dst
}

// keeps reports whether the definition of a tool is kept: it is one of the server's own.
func keeps(t *lathe.ToolSpec) bool { return t.Owner == lathe.OwnerServer && t.Wire == "" }

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
		if kept != nil && keeps(t) {
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
