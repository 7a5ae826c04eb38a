package doctor

import (
	"slices"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/text"
)

// A group has the pieces of one call.
type group []piece

// text returns the argument text of the call, unchanged.
func (g group) text() string {
	var b strings.Builder
	for _, p := range g {
		b.WriteString(p.argsText)
	}
	return b.String()
}

// names returns the names in all pieces of the call.
func (g group) names() []string {
	var out []string
	for _, p := range g {
		if p.name != "" {
			out = append(out, p.name)
		}
	}
	return out
}

// ids returns the different ids in the pieces of the call.
func (g group) ids() []string {
	var out []string
	for _, p := range g {
		if p.id != "" && !slices.Contains(out, p.id) {
			out = append(out, p.id)
		}
	}
	return out
}

func (g group) has(f form) bool {
	return slices.ContainsFunc(g, func(p piece) bool { return p.args == f })
}

// groupPieces groups pieces by call: by index, unless grouping by name finds more calls.
func groupPieces(pieces []piece) []group {
	var byIndex []group
	at := map[string]int{}
	for _, p := range pieces {
		i, ok := at[p.index]
		if !ok {
			i = len(byIndex)
			at[p.index] = i
			byIndex = append(byIndex, nil)
		}
		byIndex[i] = append(byIndex[i], p)
	}
	if inOrder := groupByName(pieces); len(byIndex) < len(inOrder) {
		return inOrder
	}
	return byIndex
}

// groupByName begins a new call at each name that follows a complete call, or a call that has no arguments if the piece has none either.
func groupByName(pieces []piece) []group {
	var out []group
	for _, p := range pieces {
		last := len(out) - 1
		if last < 0 || out[last].endsBefore(p) {
			out = append(out, group{p})
			continue
		}
		out[last] = append(out[last], p)
	}
	return out
}

func (g group) endsBefore(p piece) bool {
	if p.name == "" || len(g.names()) == 0 {
		return false
	}
	text := g.text()
	return whole(text) || text == "" && p.argsText == ""
}

func whole(text string) bool { return rawjson.Check([]byte(text), rawjson.Limits{}) == nil }

// judgeIndexes records findings about the indexes of the calls in a stream.
func (x *reader) judgeIndexes(a *answer) {
	var seen []int
	for _, p := range a.pieces {
		n, err := strconv.Atoi(p.index)
		switch {
		case p.index == "":
			x.find("index-missing")
		case err != nil:
			x.find("index-invalid")
		case n < 0:
			x.find("index-minus-one")
		case !slices.Contains(seen, n):
			seen = append(seen, n)
		}
	}
	if len(seen) == 0 {
		return
	}
	slices.Sort(seen)
	last := seen[len(seen)-1]
	hasID := slices.ContainsFunc(a.pieces, func(p piece) bool { return p.id != "" })
	switch {
	case last >= 1000:
		x.find("index-huge", strconv.Itoa(last))
	case len(seen) == 1 && len(a.groups) > 1 && hasID:
		x.find("index-repeated")
	case len(seen) == 1 && len(a.groups) > 1:
		x.findAndMend("index-repeated-no-id", "supports_parallel", "false")
	case last != len(seen)-1:
		x.find("index-sparse")
	}
}

// judgeIDs records findings about the ids of the calls.
func (x *reader) judgeIDs(a *answer) {
	var first []string // first id of each call
	for _, g := range a.groups {
		ids := g.ids()
		switch {
		case len(ids) == 0 && slices.ContainsFunc(g, func(p piece) bool { return p.hasID }):
			x.find("id-empty")
		case len(ids) == 0:
			x.find("id-missing")
		case len(ids) > 1:
			x.find("id-changing")
		case g[0].id == "":
			x.find("id-late")
		}
		if len(ids) == 0 {
			continue
		}
		if len(ids[0]) > 40 {
			x.find("id-long", text.Plural(len(ids[0]), "character"))
		}
		if slices.Contains(first, ids[0]) {
			x.find("id-repeated")
		}
		first = append(first, ids[0])
	}
}

// judgeNames records findings about names and types of the calls.
func (x *reader) judgeNames(a *answer) {
	for _, g := range a.groups {
		names := g.names()
		switch {
		case len(names) == 0:
		case g[0].name == "":
			x.find("name-late")
		case len(names) == 1:
		case len(slices.Compact(names)) == 1: // all are equal
			x.find("name-repeated")
		default:
			x.find("name-split")
		}
		if !slices.ContainsFunc(g, func(p piece) bool { return p.hasType }) {
			x.find("type-missing")
		}
		if !a.whole && len(g) == 1 && len(g.text()) > oneChunkBytes {
			x.find("one-chunk")
		}
	}
	for i := 1; i < len(a.pieces) && !a.whole; i++ {
		if a.pieces[i].chunk == a.pieces[i-1].chunk && a.pieces[i].name != "" {
			x.find("two-in-one-chunk")
		}
	}
}

// oneChunkBytes is the size of arguments in one chunk above which one-chunk is recorded.
const oneChunkBytes = 32

// judgeForms records findings about how arguments are encoded.
func (x *reader) judgeForms(a *answer) {
	for _, g := range a.groups {
		text := g.text()
		switch {
		case g.has(formObject):
			x.find("args-object")
		case g.has(formText):
			first := slices.IndexFunc(g, func(p piece) bool { return p.argsText != "" })
			switch {
			case first >= 0 && g[first].argsText == "{}" && text != "{}":
				x.find("args-empty-object-first")
			case strings.HasPrefix(text, `"`) && whole(text):
				x.find("args-double-encoded")
			case strings.TrimSpace(text) == "" && !a.cut && !limited(a):
				x.findAndMend("args-blank", toolCallTransforms, blankToObject)
			}
		case g.has(formNull):
			x.findAndMend("args-null", toolCallTransforms, blankToObject)
		default:
			x.findAndMend("args-missing", toolCallTransforms, blankToObject)
		}
	}
}

// The setting that mends missing arguments.
const (
	toolCallTransforms = "transforms.tool_call"
	blankToObject      = "assistant_tool_calls_arguments_blank_to_empty_object"
)

// limited reports whether a limit or a filter truncated the answer.
func limited(a *answer) bool { return a.finish() == "length" || a.finish() == "content_filter" }

// maxArgs is the default of max_tool_args_bytes.
const maxArgs = 200_000

// judgeArguments records findings about tool names and arguments that the model wrote.
func (x *reader) judgeArguments(a *answer) {
	for _, c := range a.calls() {
		if !offered(a.req.Tools, c.Name) && c.Name != "" {
			x.find("unknown-tool", c.Name)
		}
	}
	for _, g := range a.groups {
		text := strings.TrimSpace(g.text())
		if a.cut || limited(a) || text == "" || text[0] == '"' || asksLess(a.req, x.opts.MaxTokens) {
			continue
		}
		if len(text) > maxArgs {
			x.find("args-huge", bytesText(len(text)))
		}
		err := rawjson.Check([]byte(text), rawjson.Limits{})
		if err == nil {
			continue
		}
		switch kind := kindOf(err); kind {
		case rawjson.KindDuplicate:
			x.find("args-duplicate-keys")
		case rawjson.KindSurrogate:
			x.find("args-lone-surrogate")
		case rawjson.KindDeep:
			x.find("args-deep")
		default:
			if !strings.HasPrefix(text, "{}{") { // args-empty-object-first reports it
				x.find("args-invalid-json", kind)
			}
		}
	}
}

// asksLess reports whether the token limit of the request is meant to truncate the answer: it is below the usual limit.
func asksLess(req *lathe.Request, usual int) bool {
	return req.Sampling.MaxTokens != nil && *req.Sampling.MaxTokens < usual
}

func offered(tools []*lathe.ToolSpec, name string) bool {
	return slices.ContainsFunc(tools, func(t *lathe.ToolSpec) bool { return t.Name == name })
}
