package wire

import (
	"slices"
	"sync/atomic"

	"github.com/lathe-run/lathe"
)

// Limits of [Definitions].
const (
	// MaxDefinitionsBytes bounds the text of the lists that are kept.
	MaxDefinitionsBytes = 32 << 20
	// minShared is the size from which a list is kept: encoding less costs little.
	minShared = 16 << 10
	// maxShared is the number of lists that are kept.
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

// Definitions keeps the encoded definitions of long lists of the server's tools from request to request, so that each list is encoded once. A
// definition never changes, so that its address tells it. Lists with tools that a client declares are not kept: each request has
// definitions of its own. The zero value is usable, by several goroutines at once; nil keeps nothing.
type Definitions struct {
	lists atomic.Pointer[[]sharedList] // the newest first
}

// sharedList is the text of a list of tools in one form.
type sharedList struct {
	tools   []*lathe.ToolSpec
	form    Form
	text    []byte
	dropped []string // paths from the request
}

// Append appends the definitions of the tools with commas between them: what encode appends for each. It returns the
// paths of what the wire cannot express, such as "tools[0].schema.minimum": at most [MaxDropped], in the order of the tools. The paths
// may be shared and must not be changed.
//
// If the definitions are all of the server's own tools and have 16 KiB or more, Append also keeps the text of the list: later requests
// with the list and form get a copy, or, if shared is not nil, append nothing and set *shared to the text.
func (d *Definitions) Append(dst JSON, shared *Shared, tools []*lathe.ToolSpec, form Form, encode EncodeDefinition) (_ JSON, dropped []string) {
	var kept []sharedList
	if d != nil {
		if p := d.lists.Load(); p != nil {
			kept = *p
		}
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
	for i, t := range tools {
		var paths []string
		dst, paths = encode(dst.If(i > 0, ","), t)
		for _, path := range paths {
			if len(dropped) < MaxDropped {
				dropped = append(dropped, Element("tools", i)+path)
			}
		}
	}
	size := len(dst) - start
	if d == nil || size < minShared || size > MaxDefinitionsBytes || slices.ContainsFunc(tools, func(t *lathe.ToolSpec) bool { return !keeps(t) }) {
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
