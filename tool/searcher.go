package tool

import (
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
	maxFound     = 10  // tools that one search by text loads, and tools that one search loads by name
	defaultFound = 5   // tools that a search by text loads, unless its call says a number
	maxMore      = 10  // further tools that an answer names
	maxAbout     = 200 // bytes of the first sentence of a description
)

// searchSchema is the schema of the arguments of a search. Its numbers are those of the constants.
var searchSchema = json.RawMessage(`{"type":"object","properties":{` +
	`"query":{"type":"string","maxLength":1000,"description":"What the tool should do, in a few words."},` +
	`"names":{"type":"array","maxItems":10,"items":{"type":"string","maxLength":64},"description":"Exact names of tools to load, such as those in more of an earlier answer."},` +
	`"limit":{"type":"integer","minimum":1,"maximum":10,"description":"How many tools the query loads; 5 by default."}},"additionalProperties":false}`)

// searchArguments returns searchSchema, compiled.
var searchArguments = sync.OnceValue(func() *schema.Lazy {
	s, err := compileArgs(searchSchema)
	if err != nil {
		panic(err) // a constant
	}
	return s
})

// showAll is the projection of the search: what it returns is for the model.
var showAll = &projection{whole: true}

// searchSpec is the definition of the search. It is the same for all runs, however many tools there are: a server that keeps
// prompts can use one again after tools have come or gone.
var searchSpec = &lathe.ToolSpec{Name: SearchName, Effect: lathe.ReadOnly, Allowlist: []string{"*"}, Origin: builtinOrigin, Schema: searchSchema,
	Description: "Only some of the tools are listed. This tool searches all of them: say in query what a tool should do. " +
		"The answer has the tools that fit best in tools, which can be called from then on, and names further ones in more, which names loads. " +
		"Search before you say that something cannot be done."}

// A searcher is the tool with which a model searches for the tools of its run. It does not change: a call that its runner has
// abandoned may still use it.
type searcher struct {
	full     *advertised // what can be found
	sent     *advertised // what the model has the definitions of
	capacity capacity    // for what is not in sent
	limits   lathe.Limits
}

// Spec implements [lathe.Tool].
func (s *searcher) Spec() *lathe.ToolSpec { return searchSpec }

// Call implements [lathe.Tool]. The answer does not depend on which of the found tools have been loaded before, as long as
// the limits have room: a search that is repeated has the same answer. A name that cannot be found is counted and not shown.
func (s *searcher) Call(_ context.Context, args json.RawMessage) (*lathe.Output, error) {
	var in struct {
		Query string
		Names []string
		Limit float64 // the schema lets 5.0 pass
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return nil, err // the runner has checked args against the schema
	}
	limit := defaultFound
	if in.Limit != 0 {
		limit = int(in.Limit)
	}
	query := strings.TrimSpace(in.Query)
	if query == "" && len(in.Names) == 0 {
		return nil, Fail(lathe.CodeInvalidArguments, "say in query what the tool should do, or in names which tools to load")
	}
	var found, more []*lathe.ToolSpec
	unknown := 0
	for _, name := range in.Names {
		switch spec := s.full.find(strings.TrimSpace(name)); {
		case spec == nil:
			unknown++
		case !slices.Contains(found, spec):
			found = append(found, spec)
		}
	}
	if query != "" {
		named := found
		rest := limit
		for _, hit := range s.full.index().Search(query, len(named)+limit+maxMore) {
			spec := s.full.specs[hit.Position]
			switch {
			case slices.Contains(named, spec):
			case rest > 0:
				found = append(found, spec)
				rest--
			case len(more) < maxMore:
				more = append(more, spec)
			}
		}
	}
	return &lathe.Output{Data: s.answer(found, more, unknown, query != "")}, nil
}

// maxTail bounds the bytes of an answer behind its lists.
const maxTail = 128

// answer returns the answer of a search; searched says that it had a query. Tools for which the limits on definitions have no
// room are named in more. The answer stays below the limit on outputs: definitions that do not fit into it are left out, then further tools. The model gets the
// definition of a tool in tools with its next request, in any case.
func (s *searcher) answer(found, more []*lathe.ToolSpec, unknown int, searched bool) []byte {
	capacity, limited := s.capacity, false
	most := s.limits.MaxOutputBytes - maxTail
	json := rawjson.Limits{MaxDepth: s.limits.MaxJSONDepth - 3, MaxKeys: s.limits.MaxJSONKeys}
	b := append(make([]byte, 0, 4<<10), `{"tools":[`...)
	reserve := (len(found) + maxMore) * (maxAbout + 128)
	n := 0
	var left []*lathe.ToolSpec
	for _, spec := range found {
		before, after := len(b), capacity
		if s.sent.find(spec.Name) == nil && !after.take(spec) {
			limited, left = true, append(left, spec)
			continue
		}
		b = appendComma(b, n)
		start := len(b)
		b = appendFound(b, spec)
		if len(b)+reserve > most || rawjson.Check(parametersOf(spec), json) != nil {
			b = appendAbout(b[:start], spec)
		}
		if len(b)+len(`],"more":[`) > most {
			b, left = b[:before], append(left, spec)
			continue
		}
		capacity = after
		n++
	}
	b = append(b, `],"more":[`...)
	left = append(left, more...)
	for i, spec := range left[:min(len(left), maxMore)] {
		before := len(b)
		if b = appendAbout(appendComma(b, i), spec); len(b) > most {
			b = b[:before]
			break
		}
	}
	b = append(b, ']')
	if unknown > 0 {
		b = fmt.Appendf(b, `,"not_found":%d`, unknown)
	}
	if limited {
		b = append(b, `,"note":"No more tools can be loaded in this run."`...)
	} else if searched && len(found)+len(more) == 0 {
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

// foundNames returns the names of the tools that an answer loads.
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
