package wire

import (
	"slices"
	"sync/atomic"

	"github.com/lathe-run/lathe"
)

// Limits of [Definitions].
const (
	// maxDefinitionsBytes bounds the stored text of all lists together.
	maxDefinitionsBytes = 32 << 20
	// minShared is the smallest size in bytes of a list that is stored. Encoding a smaller list costs little.
	minShared = 16 << 10
	// maxShared bounds the number of stored lists.
	maxShared = 8
)

// Shared is a part of an encoded request that several requests have in common. Text must be inserted at index At of the encoded head and
// must not be modified. If Text is nil, there is no such part.
type Shared struct {
	At   int
	Text []byte
}

// Form contains what encoded definitions depend on, besides the tools.
type Form struct {
	Strict Strict
	Schema string // column Schema of [destination.Row]
	// Reduced is set if the server has refused a feature of definitions, which are then encoded without it. Each wire has at most one such
	// feature.
	Reduced bool
}

// An EncodeDefinition appends the definition of a tool. It returns the paths, below the tool, of what the wire cannot express, such as
// ".schema.minimum", at most [MaxDropped]. The result must depend only on the tool and the form.
type EncodeDefinition func(dst []byte, t *lathe.ToolSpec) (_ []byte, dropped []string)

// Definitions caches the encoded definitions of long lists of the server's tools, so that each list is encoded once. Tool specifications
// are immutable, so they are compared by address. Lists with tools declared by a client are not cached, because each request has different
// ones. The zero value may be used by several goroutines at once; a nil *Definitions caches nothing.
type Definitions struct {
	lists atomic.Pointer[[]sharedList] // the newest first
}

// A sharedList is the encoded text of a list of tools in one form.
type sharedList struct {
	tools   []*lathe.ToolSpec
	form    Form
	text    []byte
	dropped []string // paths of members of the tools that the wire cannot express
}

// Append appends the definitions of the tools, encoded by encode and separated by commas. It returns the paths of what the wire cannot
// express, such as "tools[0].schema.minimum", at most [MaxDropped], in the order of the tools. The paths may be shared and must not be
// modified.
//
// If all of the tools are the server's own and the definitions have 16 KiB or more, Append also caches the text. Later calls with the same
// list and form append a copy of it or, if shared is not nil, append nothing and set *shared to the text.
func (d *Definitions) Append(dst JSON, shared *Shared, tools []*lathe.ToolSpec, form Form, encode EncodeDefinition) (_ JSON, dropped []string) {
	var kept []sharedList
	if d != nil {
		if lists := d.lists.Load(); lists != nil {
			kept = *lists
		}
	}
	at := slices.IndexFunc(kept, func(l sharedList) bool { return l.form == form && slices.Equal(l.tools, tools) })
	switch {
	case at >= 0 && shared == nil:
		return dst.Raw(kept[at].text), kept[at].dropped
	case at >= 0:
		*shared = Shared{len(dst), kept[at].text}
		return dst, kept[at].dropped
	}
	start := len(dst)
	for i, t := range tools {
		var paths []string
		dst, paths = encode(dst.If(i > 0, ","), t)
		for _, path := range paths {
			if len(dropped) < MaxDropped {
				dropped = append(dropped, Element("tools", i)+path)
			}
		}
	}
	if d != nil {
		d.store(kept, sharedList{tools, form, dst[start:], slices.Clip(dropped)})
	}
	return dst, dropped
}

// store stores a copy of list before the current lists, in place of the oldest, if its size is within the limits and all its tools may be
// cached. Of two lists stored at the same time, one may be lost; it is encoded again.
func (d *Definitions) store(current []sharedList, list sharedList) {
	size := len(list.text)
	if size < minShared || size > maxDefinitionsBytes || slices.ContainsFunc(list.tools, isUncacheable) {
		return
	}
	list.tools, list.text = slices.Clone(list.tools), slices.Clone(list.text)
	next := []sharedList{list}
	for _, l := range current {
		size += len(l.text)
		if size > maxDefinitionsBytes || len(next) == maxShared {
			break
		}
		next = append(next, l)
	}
	d.lists.Store(&next)
}

// isUncacheable reports whether the definition of a tool must not be cached: it is not one of the server's own, or a disallowed tool, which
// is a copy for one request.
func isUncacheable(t *lathe.ToolSpec) bool {
	return t.Owner != lathe.OwnerServer || t.Wire != "" || t.Disallowed
}

// Allowed returns the names of the tools that the model may call if some of the tools are disallowed, else nil.
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

// AllowedPath is the path for a restriction of the allowed tools that a wire cannot express. The model may then call other tools, which the
// run refuses.
const AllowedPath = "tool_choice.tools"
