package wire

import (
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

// Form is what encoded definitions depend on besides the tools.
type Form struct {
	Strict Strict
	Schema string // the column of [destination.Row]
	// Reduced says that the server has refused a feature of definitions, which are then encoded without it. Each wire has one such
	// feature at most.
	Reduced bool
}

// An EncodeDefinition appends the definition of a tool, and returns the paths below the tool of what the wire cannot express, such as
// ".schema.minimum": at most [MaxDropped]. The result may depend on the tool and on the form only.
type EncodeDefinition func(dst []byte, t *lathe.ToolSpec) (_ []byte, dropped []string)

// Definitions keeps the encoded definitions of the server's tools from request to request, so that each is encoded once and then
// copied. A definition never changes, so that its address tells it. Tools that a client declares are not kept: each request has
// definitions of its own. The zero value is usable, by several goroutines at once; nil keeps nothing.
type Definitions struct {
	kept  atomic.Pointer[encoded]
	lists atomic.Pointer[[]sharedList] // the newest first
}

// sharedList is the text of a list of tools in one form.
type sharedList struct {
	tools   []*lathe.ToolSpec
	form    Form
	text    []byte
	dropped []string // paths from the request
}

// encoded holds definitions of one form. It never changes.
type encoded struct {
	form    Form
	texts   map[*lathe.ToolSpec][]byte
	dropped map[*lathe.ToolSpec][]string // paths below the tool; of tools that have any
	size    int                          // of the texts and paths
}

// Append appends the definitions of the tools with commas between them: what encode appends for each, or a copy of it. It returns the
// paths of what the wire cannot express, such as "tools[0].schema.minimum": at most [MaxDropped], in the order of the tools. The paths
// may be shared and must not be changed.
//
// If the definitions are all of the server's own tools and have 16 KiB or more, Append also keeps the text of the list: later requests
// with the list and form get a copy, or, if shared is not nil, append nothing and set *shared to the text.
func (d *Definitions) Append(dst JSON, shared *Shared, tools []*lathe.ToolSpec, form Form, encode EncodeDefinition) (_ JSON, dropped []string) {
	if d == nil || len(tools) < minDefinitions {
		return d.appendEach(dst, tools, form, encode)
	}
	var kept []sharedList
	if p := d.lists.Load(); p != nil {
		kept = *p
	}
	for i := range kept {
		if l := &kept[i]; l.form == form && slices.Equal(l.tools, tools) {
			if shared == nil {
				return dst.Raw(l.text), l.dropped
			}
			*shared = Shared{len(dst), l.text}
			return dst, l.dropped
		}
	}
	start := len(dst)
	dst, dropped = d.appendEach(dst, tools, form, encode)
	size := len(dst) - start
	if size < minShared || size > MaxDefinitionsBytes || slices.ContainsFunc(tools, func(t *lathe.ToolSpec) bool { return !keeps(t) }) {
		return dst, dropped
	}
	next := []sharedList{{slices.Clone(tools), form, slices.Clone(dst[start:]), slices.Clip(dropped)}}
	for _, l := range kept {
		if size += len(l.text); size > MaxDefinitionsBytes || len(next) == maxShared {
			break
		}
		next = append(next, l)
	}
	d.lists.Store(&next) // a list that another goroutine stores at the same time may be lost: it is made again
	return dst, dropped
}

// keeps reports whether the definition of a tool is kept: it is one of the server's own. Disallowed ones are copies for one request.
func keeps(t *lathe.ToolSpec) bool {
	return t.Owner == lathe.OwnerServer && t.Wire == "" && !t.Disallowed
}

// appendEach is Append without a list: it looks for the text of each tool.
func (d *Definitions) appendEach(dst JSON, tools []*lathe.ToolSpec, form Form, encode EncodeDefinition) (_ JSON, dropped []string) {
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
	added := encoded{}
	for i, t := range tools {
		dst = dst.If(i > 0, ",")
		var paths []string
		if text, ok := kept.text(t); ok {
			dst, paths = dst.Raw(text), kept.dropped[t]
		} else {
			start := len(dst)
			if dst, paths = encode(dst, t); kept != nil && keeps(t) {
				if added.texts == nil {
					added.texts = make(map[*lathe.ToolSpec][]byte, len(tools)-i)
				}
				added.add(t, slices.Clone(dst[start:]), paths)
			}
		}
		for _, path := range paths {
			if len(dropped) == MaxDropped {
				break
			}
			dropped = append(dropped, Element("tools", i)+path)
		}
	}
	if len(added.texts) > 0 {
		d.kept.Store(kept.with(tools, &added))
	}
	return dst, dropped
}

// text returns the text of a tool. e may be nil.
func (e *encoded) text(t *lathe.ToolSpec) (text []byte, ok bool) {
	if e == nil {
		return nil, false
	}
	text, ok = e.texts[t]
	return text, ok
}

// add adds the definition of a tool that e does not have.
func (e *encoded) add(t *lathe.ToolSpec, text []byte, dropped []string) {
	e.texts[t] = text
	e.size += len(text)
	if len(dropped) == 0 {
		return
	}
	if e.dropped == nil {
		e.dropped = map[*lathe.ToolSpec][]string{}
	}
	e.dropped[t] = dropped
	for _, path := range dropped {
		e.size += len(path)
	}
}

// with returns the definitions of e and those of added, or, if all would be too much, those of the tools only.
func (e *encoded) with(tools []*lathe.ToolSpec, added *encoded) *encoded {
	next := &encoded{form: e.form, texts: added.texts, dropped: added.dropped, size: added.size}
	if e.size+added.size <= MaxDefinitionsBytes {
		for t, text := range e.texts {
			next.add(t, text, e.dropped[t])
		}
		return next
	}
	for _, t := range tools {
		if _, both := next.texts[t]; !both {
			if text, ok := e.texts[t]; ok {
				next.add(t, text, e.dropped[t])
			}
		}
	}
	return next
}

// Allowed returns the names of the tools that the model may call, if some are disallowed; else nil.
func Allowed(tools []*lathe.ToolSpec) (may []string) {
	if !slices.ContainsFunc(tools, func(t *lathe.ToolSpec) bool { return t.Disallowed }) {
		return nil
	}
	may = []string{}
	for _, t := range tools {
		if !t.Disallowed {
			may = append(may, t.Name)
		}
	}
	return may
}

// AllowedPath is the path of a set of allowed tools that a wire cannot express. The model may then call others, and the run refuses it.
const AllowedPath = "tool_choice.tools"
