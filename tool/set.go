package tool

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/lazy"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/schema"
)

// A Set contains tools with unique names. Its methods may be called from several goroutines at once. A run uses the tools that the set had
// when the run began, until [Work.Refresh].
//
// The state of a tool's concurrency and rate limits belongs to the set: runners with the same set share it.
type Set struct {
	limits lathe.Limits
	search Search     // with defaults
	mu     sync.Mutex // locked by Add and Replace
	now    atomic.Pointer[registry]
}

// registry is one state of a set. It is immutable, except for list, which is made at its first use.
type registry struct {
	byName   map[string]*entry
	sorted   []*entry // sorted by name
	backends map[string]*backend
	// startRuns reports that a tool may start runs. It remains true after the last such tool was removed.
	startRuns bool

	listing sync.Once // guards list
	list    []*lathe.ToolSpec
}

// all returns all definitions, sorted by name, in a slice that must not be changed. Its capacity equals its length, so that append copies
// it.
func (r *registry) all() []*lathe.ToolSpec {
	r.listing.Do(func() {
		r.list = make([]*lathe.ToolSpec, len(r.sorted))
		for i, e := range r.sorted {
			r.list[i] = e.spec
		}
	})
	return r.list
}

// entry is a registered tool with its compiled definition.
type entry struct {
	tool      lathe.Tool
	spec      *lathe.ToolSpec
	args      *schema.Lazy
	output    *schema.Lazy // nil: no output schema
	show      *projection
	slots     chan struct{} // nil: no limit
	backend   *backend      // nil: none
	rate      *bucket       // nil: no limit
	startsRun bool
}

// backend limits the concurrent calls of all tools that name it, and refuses calls while it fails.
type backend struct {
	limit   int // 0: none of its tools has declared a limit
	slots   chan struct{}
	breaker breaker
}

// A RunStarter is a tool whose calls may start runs. If the depth of the calling run has reached max_depth, the runner ends the call with
// max_depth and does not call the tool.
type RunStarter interface {
	// StartsRun reports whether calls of the tool may start runs. It must always return the same value.
	StartsRun() bool
}

// NewSet returns a set of the tools, with the default limits of [lathe.Limits]: 128 tools (MaxTools) and definitions of 200,000 bytes
// (MaxToolsBytes). Its errors are those of [Set.Add].
func NewSet(tools ...lathe.Tool) (*Set, error) { return NewSetWithin(lathe.Limits{}, tools...) }

// NewSetWithin returns a set as [NewSet] does, with MaxTools and MaxToolsBytes of limits; 0 is the default. The other limits are not used.
// Hidden tools do not count.
func NewSetWithin(limits lathe.Limits, tools ...lathe.Tool) (*Set, error) {
	return NewSetWithSearch(limits, Search{}, tools...)
}

// Add registers all tools or, on an error, none. Runs in progress do not get them before [Work.Refresh]. The error joins one *[lathe.Error]
// of code invalid_config for each problem: a name that does not match ^[a-zA-Z0-9_-]{1,64}$, a duplicate name (the text contains both
// origins), a schema that does not compile, an empty allowlist, a negative limit, or definitions beyond the limits of the set
// ([*DefinitionsError]).
func (s *Set) Add(tools ...lathe.Tool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.now.Load()
	next := &registry{
		byName:    maps.Clone(old.byName),
		sorted:    slices.Clone(old.sorted),
		backends:  maps.Clone(old.backends),
		startRuns: old.startRuns,
	}
	var errs []error
	for i, t := range tools {
		name, err := next.add(t)
		if err != nil {
			if name == "" {
				name = fmt.Sprintf("number %d", i+1)
			}
			errs = append(errs, lathe.CodeInvalidConfig.Wrap("tool: register "+name, err))
		}
	}
	return s.store(next, errs)
}

// store stores the next registry, unless it or one of its tools, as errs says, is invalid. s.mu must be locked.
func (s *Set) store(next *registry, errs []error) error {
	slices.SortFunc(next.sorted, func(a, b *entry) int { return strings.Compare(a.spec.Name, b.spec.Name) })
	if err := s.checkRegistry(next); err != nil {
		errs = append(errs, lathe.CodeInvalidConfig.Wrap("tool: register", err))
	}
	if len(errs) == 0 && !slices.Equal(next.sorted, s.now.Load().sorted) { // otherwise the caches of runners for the old state remain valid
		s.now.Store(next)
	}
	return errors.Join(errs...)
}

// With returns a new set with the current tools of s and the given ones, and with the search and limits of s. Both sets share the state of
// the concurrency and rate limits of their common tools. Later changes of one do not affect the other. s is not changed. The errors are those
// of [Set.Add].
func (s *Set) With(tools ...lathe.Tool) (*Set, error) {
	with := &Set{limits: s.limits, search: s.search}
	with.now.Store(s.now.Load())
	if err := with.Add(tools...); err != nil {
		return nil, err
	}
	return with, nil
}

// Lookup returns the tool with exactly this name, also if it is hidden. It returns nil and false if the set has no such tool.
func (s *Set) Lookup(name string) (lathe.Tool, bool) {
	if e := s.now.Load().byName[name]; e != nil {
		return e.tool, true
	}
	return nil, false
}

// Specs returns the definitions of all tools, hidden ones included, sorted by name. The slice belongs to the caller.
func (s *Set) Specs() []*lathe.ToolSpec {
	return slices.Clone(s.now.Load().all())
}

// SharedSpecs returns what [Set.Specs] returns without copying it. The slice is shared by all callers and must not be changed.
func (s *Set) SharedSpecs() []*lathe.ToolSpec { return s.now.Load().all() }

// specs returns the definitions that may be sent to a model.
func (r *registry) specs() []*lathe.ToolSpec {
	specs := make([]*lathe.ToolSpec, 0, len(r.sorted))
	for _, e := range r.sorted {
		if !e.spec.Hidden {
			specs = append(specs, e.spec)
		}
	}
	return specs
}

// add registers a tool and returns its name. The name is "" if the tool has no valid one.
func (r *registry) add(t lathe.Tool) (name string, err error) {
	if t == nil {
		return "", errors.New("the tool is nil")
	}
	spec := t.Spec()
	if spec == nil {
		return "", errors.New("the tool has no definition")
	}
	if !validName(spec.Name) {
		return "", fmt.Errorf("the name %.80q is not 1 to 64 of the characters a-z, A-Z, 0-9, _ and -", spec.Name)
	}
	if b, ok := t.(interface{ broken() error }); ok && b.broken() != nil {
		return spec.Name, b.broken()
	}
	if taken := r.byName[spec.Name]; taken != nil {
		return spec.Name, fmt.Errorf("the name is taken: one tool is from %s, the other from %s", origin(taken.spec), origin(spec))
	}
	e, err := newEntry(t, spec)
	if err != nil {
		return spec.Name, err
	}
	if spec.Backend != "" {
		if e.backend, err = r.joinBackend(spec); err != nil {
			return spec.Name, err
		}
	}
	r.byName[spec.Name] = e
	r.sorted = append(r.sorted, e)
	r.startRuns = r.startRuns || e.startsRun
	return spec.Name, nil
}

func newEntry(t lathe.Tool, spec *lathe.ToolSpec) (*entry, error) {
	e := &entry{tool: t, spec: spec}
	var err error
	if e.args, err = compileArgs(spec.Schema); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if len(spec.OutputSchema) > 0 {
		if e.output, err = schema.CompileLazily(spec.OutputSchema); err != nil {
			return nil, fmt.Errorf("output schema: %w", err)
		}
	}
	if spec.Owner != lathe.OwnerClient {
		if e.show, err = newProjection(spec.Allowlist); err != nil {
			return nil, err
		}
	}
	switch {
	case spec.Concurrency < 0, spec.BackendConcurrency < 0, spec.Timeout < 0, spec.CacheTTL < 0:
		return nil, errors.New("a limit is negative")
	case spec.Rate < 0, math.IsNaN(spec.Rate), math.IsInf(spec.Rate, 0):
		return nil, errors.New("the rate is not a number of calls a second")
	case spec.Backend == "" && spec.BackendConcurrency > 0:
		return nil, errors.New("there is a limit on a backend, and no backend is named")
	}
	if spec.Concurrency > 0 {
		e.slots = make(chan struct{}, spec.Concurrency)
	}
	if spec.Rate > 0 {
		e.rate = newBucket(spec.Rate)
	}
	if r, ok := t.(RunStarter); ok {
		e.startsRun = r.StartsRun()
	}
	return e, nil
}

var noArguments = []byte(`{"type":"object","additionalProperties":false}`)

func compileArgs(raw []byte) (*schema.Lazy, error) {
	if len(raw) == 0 {
		return schema.CompileLazily(noArguments)
	}
	if err := rawjson.Check(raw, rawjson.Limits{}); err != nil {
		return nil, err
	}
	if raw[rawjson.SkipSpace(raw, 0)] != '{' {
		return nil, errors.New("not an object")
	}
	if typ := rawjson.At(raw, "type"); typ != nil && string(typ) != `"object"` {
		return nil, errors.New("the arguments are an object: its type must be \"object\"")
	}
	return schema.CompileLazily(raw)
}

// joinBackend returns the backend that the tool names. Tools of one backend must declare the same limit or none.
func (r *registry) joinBackend(spec *lathe.ToolSpec) (*backend, error) {
	b, limit := r.backends[spec.Backend], spec.BackendConcurrency
	switch {
	case b == nil:
		b = &backend{limit: limit}
		if limit > 0 {
			b.slots = make(chan struct{}, limit)
		}
		r.backends[spec.Backend] = b
	case limit == 0, limit == b.limit:
	case b.limit == 0:
		return nil, fmt.Errorf("backend %q was registered without a limit: name it with the first of its tools", spec.Backend)
	default:
		return nil, fmt.Errorf("backend %q has %d calls at once, not %d", spec.Backend, b.limit, limit)
	}
	return b, nil
}

// maxOrigins is the maximum number of origins in one error.
const maxOrigins = 16

// byOrigin returns the sum of size for each origin, the largest first: "mcp:browser 25, builtin 2".
func byOrigin(specs []*lathe.ToolSpec, size func(*lathe.ToolSpec) int) string {
	sums := map[string]int{}
	for _, s := range specs {
		sums[origin(s)] += size(s)
	}
	names := slices.SortedFunc(maps.Keys(sums), func(a, b string) int { return cmp.Or(sums[b]-sums[a], strings.Compare(a, b)) })
	var b strings.Builder
	for i, name := range names {
		if i == maxOrigins {
			fmt.Fprintf(&b, " and %d more", len(names)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s %d", name, sums[name])
	}
	return b.String()
}

// countByOrigin returns the number of tools for each origin, as [byOrigin] does.
func countByOrigin(specs []*lathe.ToolSpec) string {
	return byOrigin(specs, func(*lathe.ToolSpec) int { return 1 })
}

// definitionsSize returns the size of the definitions on the wire, in bytes.
func definitionsSize(specs []*lathe.ToolSpec) (size int) {
	for _, s := range specs {
		size += definitionSize(s)
	}
	return size
}

// definitionSize returns the size of the definition on the wire, in bytes.
func definitionSize(s *lathe.ToolSpec) int {
	const frame = len(`{"type":"function","function":{"name":"","description":,"parameters":}}`)
	params := cmp.Or(len(s.Schema), len(noArguments))
	var space [1 << 10]byte // large enough for most descriptions
	return frame + len(s.Name) + len(rawjson.AppendQuote(space[:0], s.Description)) + params
}

var toolName = lazy.Regexp(`^[a-zA-Z0-9_-]{1,64}$`)

func validName(s string) bool { return toolName().MatchString(s) }

func origin(s *lathe.ToolSpec) string {
	return cmp.Or(s.Origin, "an unnamed origin")
}
