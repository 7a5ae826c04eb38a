package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/schema"
	"github.com/lathe-run/lathe/internal/text"
)

const (
	maxFound     = 10  // maximum number of tools that one search loads by text, and that one search loads by name
	defaultFound = 5   // number of tools that a search by text loads if the call has no limit
	maxMore      = 10  // maximum number of further tools that an answer names
	maxAbout     = 200 // maximum length of the first sentence of a description, in bytes
)

// searchSchema is the schema of the arguments of a search. Its numbers are those of the constants.
var searchSchema = json.RawMessage(`{"type":"object","properties":{` +
	`"query":{"type":"string","maxLength":1000,"description":"What the tool should do, in a few words."},` +
	`"names":{"type":"array","maxItems":10,"items":{"type":"string","maxLength":64},"description":"Exact names of tools to load, such as those in more of an earlier answer."},` +
	`"limit":{"type":"integer","minimum":1,"maximum":10,"description":"How many tools the query loads; 5 by default."}},"additionalProperties":false}`)

// searchArguments returns the compiled searchSchema.
var searchArguments = sync.OnceValue(func() *schema.Lazy {
	s, err := compileArgs(searchSchema)
	if err != nil {
		panic(err) // cannot happen: a constant
	}
	return s
})

// showAll is the projection of the search: its whole output is for the model.
var showAll = &projection{whole: true}

// searchSpec is the definition of the search. It is the same for all runs and sets, so that a server can reuse cached prompts after tools
// were added or removed.
var searchSpec = &lathe.ToolSpec{Name: SearchName, Effect: lathe.ReadOnly, Allowlist: []string{"*"}, Origin: builtinOrigin, Schema: searchSchema,
	Description: "Only some of the tools are listed. This tool searches all of them: say in query what a tool should do. " +
		"The answer has the tools that fit best in tools, which can be called from then on, and names further ones in more, which names loads. " +
		"Search before you say that something cannot be done."}

// A searcher is the tool by which a model searches for the tools of its run. It is immutable, because a call that its runner has abandoned
// may still use it.
type searcher struct {
	full     *advertised // the tools that can be found
	sent     *advertised // the list whose definitions the model has
	capacity capacity    // remaining capacity for tools that are not in sent
	limits   lathe.Limits
}

// Spec implements [lathe.Tool].
func (s *searcher) Spec() *lathe.ToolSpec { return searchSpec }

// Call implements [lathe.Tool]. A repeated search has the same answer: unless a limit is reached, the answer does not depend on which of
// the found tools are already loaded. Names that cannot be found are counted, not listed.
func (s *searcher) Call(_ context.Context, args json.RawMessage) (*lathe.Output, error) {
	var in struct {
		Query string
		Names []string
		Limit float64 // a float, because the schema allows 5.0
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return nil, err // cannot happen: the runner has checked args against the schema
	}
	limit := cmp.Or(int(in.Limit), defaultFound)
	query := strings.TrimSpace(in.Query)
	if query == "" && len(in.Names) == 0 {
		return nil, Fail(lathe.CodeInvalidArguments, "say in query what the tool should do, or in names which tools to load")
	}
	var named []*lathe.ToolSpec
	unknown := 0
	for _, name := range in.Names {
		switch spec := s.full.find(strings.TrimSpace(name)); {
		case spec == nil:
			unknown++
		case !slices.Contains(named, spec):
			named = append(named, spec)
		}
	}
	var hits []*lathe.ToolSpec // without those that are named
	if query != "" {
		for _, hit := range s.full.index().Search(query, len(named)+limit+maxMore) {
			if spec := s.full.specs[hit.Position]; !slices.Contains(named, spec) {
				hits = append(hits, spec)
			}
		}
	}
	limit = min(limit, len(hits))
	found, more := append(named, hits[:limit]...), hits[limit:min(limit+maxMore, len(hits))]
	return &lathe.Output{Data: s.answer(query, found, more, unknown)}, nil
}

const (
	maxTail   = 128            // maximum length of an answer after its lists, in bytes
	aboutSize = maxAbout + 128 // maximum length of a tool without its definition, in bytes
)

// answer returns the answer of a search, for example
//
//	{"tools":[{"name":"a","description":"…","parameters":{…}}],"more":[{"name":"b","about":"…"}],"not_found":1}
//
// Tools for which the limits on definitions have no capacity are named in more. The answer is shorter than the limit on outputs: it omits
// definitions that do not fit, and then further tools. The model receives the definition of every tool in tools with its next request anyway.
func (s *searcher) answer(query string, found, more []*lathe.ToolSpec, unknown int) []byte {
	limit := s.limits.MaxOutputBytes - maxTail
	withDefinitions := limit - (len(found)+maxMore)*aboutSize
	space, full := s.capacity, false // full: the limits on definitions have no capacity for one of the tools
	b := append(make([]byte, 0, 4<<10), `{"tools":[`...)
	listed := 0
	var unlisted []*lathe.ToolSpec // of found
	for _, spec := range found {
		remaining := space
		if isLoaded := s.sent.find(spec.Name) != nil; !isLoaded && !remaining.take(spec) {
			full = true
			unlisted = append(unlisted, spec)
			continue
		}
		longer := s.appendTool(appendComma(b, listed), spec, withDefinitions)
		if len(longer)+len(`],"more":[`) > limit {
			unlisted = append(unlisted, spec)
			continue
		}
		b, space = longer, remaining
		listed++
	}
	b = append(b, `],"more":[`...)
	unlisted = append(unlisted, more...)
	for i, spec := range unlisted[:min(len(unlisted), maxMore)] {
		longer := appendAbout(appendComma(b, i), spec)
		if len(longer) > limit {
			break
		}
		b = longer
	}
	b = append(b, ']')
	if unknown > 0 {
		b = fmt.Appendf(b, `,"not_found":%d`, unknown)
	}
	if full {
		b = append(b, `,"note":"No more tools can be loaded in this run."`...)
	} else if query != "" && len(found)+len(more) == 0 {
		b = append(b, `,"note":"No tool has a word of the query. Search for other words."`...)
	}
	return append(b, '}')
}

func appendComma(b []byte, n int) []byte {
	if n > 0 {
		b = append(b, ',')
	}
	return b
}

func parametersOf(spec *lathe.ToolSpec) []byte {
	if len(spec.Schema) == 0 {
		return noArguments
	}
	return spec.Schema
}

// appendTool appends a tool with its definition, or without it if the answer would have more than most bytes, or if the definition would
// violate the limits on JSON.
func (s *searcher) appendTool(b []byte, spec *lathe.ToolSpec, most int) []byte {
	longer := appendFound(b, spec)
	inside := rawjson.Limits{MaxDepth: s.limits.MaxJSONDepth - 3, MaxKeys: s.limits.MaxJSONKeys} // a definition is at depth 3
	if len(longer) > most || rawjson.Check(parametersOf(spec), inside) != nil {
		return appendAbout(b, spec)
	}
	return longer
}

// appendFound appends a tool with its definition.
func appendFound(b []byte, spec *lathe.ToolSpec) []byte {
	b = appendString(append(b, `{"name":`...), spec.Name)
	b = appendString(append(b, `,"description":`...), spec.Description)
	b = append(append(b, `,"parameters":`...), parametersOf(spec)...)
	return append(b, '}')
}

// appendAbout appends a tool with the first sentence of its description.
func appendAbout(b []byte, spec *lathe.ToolSpec) []byte {
	b = appendString(append(b, `{"name":`...), spec.Name)
	b = appendString(append(b, `,"about":`...), text.Clip(text.FirstSentence(text.Cut(spec.Description, 4*maxAbout)), maxAbout))
	return append(b, '}')
}

// foundNames returns the names of the tools that a search with this answer loads.
func foundNames(answer []byte) []string {
	var a struct{ Tools []struct{ Name string } }
	if json.Unmarshal(answer, &a) != nil {
		return nil
	}
	names := make([]string, len(a.Tools))
	for i := range a.Tools {
		names[i] = a.Tools[i].Name
	}
	return names
}
