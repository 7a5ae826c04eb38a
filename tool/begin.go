package tool

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
)

// RunOptions say how one run differs from its runner. Whoever takes them from outside bounds them first.
type RunOptions struct {
	Settings *lathe.Settings // nil: the runner's
	Limits   *lathe.Limits   // nil: the runner's
	// ClientTools are the tools that the caller declared and executes itself. Calls to them are
	// planned and handed over in Outcome.Pending. A name that the set also has is the set's.
	ClientTools []*lathe.ToolSpec
	// Allow, when not nil, names the only tools of the set that the run may use. The others are unknown to it.
	Allow []string
	// HandOver makes calls to names that nobody knows the caller's, too: it has seen them already.
	HandOver bool
	// History is what the run starts from: the ids of its calls are not given again.
	History []lathe.Message
	// Resumed, when set, is what came before in a run that goes on.
	Resumed *Resumed
}

// Begin opens the work of one run, over the tools that the set has now. It costs little until tools
// are asked for or called. What run points to is told to policies and must not change any more; nil
// is a run without a name.
func (r *Runner) Begin(run *lathe.RunInfo, opts *RunOptions) *Work {
	if run == nil {
		run = &lathe.RunInfo{}
	}
	w, _ := r.works.Get().(*Work)
	if w == nil {
		w = &Work{}
	}
	w.r, w.info, w.settings, w.limits = r, run, r.opts.Settings, r.opts.Limits
	if r.set != nil {
		w.tools = r.set.now.Load()
	} else {
		w.tools = &registry{}
	}
	if opts != nil {
		w.handOver = opts.HandOver
		if opts.Settings != nil {
			w.settings = *opts.Settings
		}
		if opts.Limits != nil {
			w.limits = *opts.Limits
		}
		if opts.Allow != nil {
			w.allow = make(map[string]bool, len(opts.Allow))
			for _, name := range opts.Allow {
				w.allow[name] = true
			}
		}
		if len(opts.ClientTools) > 0 {
			w.client = make(map[string]*lathe.ToolSpec, len(opts.ClientTools))
			for _, spec := range opts.ClientTools {
				if spec != nil && w.has(spec.Name) == nil {
					w.client[spec.Name] = spec
				}
			}
		}
		for i := range opts.History {
			for _, p := range opts.History[i].Parts {
				if c, ok := p.(lathe.ToolCall); ok {
					w.ids.set(c.ID, idTaken)
				}
			}
		}
		w.resume(opts.Resumed)
		w.remember(opts)
	}
	w.limits = w.limits.WithDefaults()
	return w
}

// Close gives the memory of w to other runs. It is optional; w must not be used after it.
func (w *Work) Close() {
	r := w.r
	*w = Work{ids: w.ids.emptied(), repeat: w.repeat.emptied(), used: emptied(w.used), withheld: emptied(w.withheld)}
	r.works.Put(w)
}

// maxPooled bounds the entries that a list or a map of a Work may have had to be used by another run.
const maxPooled = 256

// emptied returns the memory of list, holding nothing.
func emptied[T any](list []T) []T {
	if cap(list) > maxPooled {
		return nil
	}
	clear(list)
	return list[:0]
}

// emptiedMap is emptied for maps.
func emptiedMap[K comparable, V any](m map[K]V) map[K]V {
	if len(m) > maxPooled {
		return nil
	}
	clear(m)
	return m
}

// Check says whether a run may be begun with these options: client tools with good names of their
// own, and not more definitions than the limits allow. The error is a *[lathe.Error] of code
// invalid_request.
func (r *Runner) Check(run *lathe.RunInfo, opts *RunOptions) error {
	w := r.Begin(run, opts)
	defer w.Close()
	err := w.checkClient(opts)
	if err == nil {
		err = checkSurface(w.Specs(), w.limits)
	}
	if err != nil {
		return &lathe.Error{Code: lathe.CodeInvalidRequest, Op: "tool: begin", Err: err}
	}
	return nil
}

func (w *Work) checkClient(opts *RunOptions) error {
	if opts == nil {
		return nil
	}
	seen := map[string]bool{}
	for _, spec := range opts.ClientTools {
		switch {
		case spec == nil:
			return errors.New("a client tool is nil")
		case !validName(spec.Name):
			return fmt.Errorf("the tool name %.80q is not 1 to 64 of the characters a-z, A-Z, 0-9, _ and -", spec.Name)
		case w.has(spec.Name) != nil:
			return fmt.Errorf("the tool name %s is taken: one tool is from %s, the other from the request", spec.Name, origin(w.has(spec.Name).spec))
		case seen[spec.Name]:
			return fmt.Errorf("the tool %s is declared twice", spec.Name)
		}
		seen[spec.Name] = true
	}
	return nil
}

// surface is what a run may see of the tools. It does not change: runs that may see the same have
// the same one.
type surface struct {
	specs []*lathe.ToolSpec
	names []byte // a JSON array of the names, at most maxNames of them
}

// maxNames bounds the names that an answer to an unknown tool lists.
const maxNames = 50

// Specs returns the definitions to send to the model: those of the client and those of the set that
// are not hidden, that the run may use and is not too deep for, and that the policy allows or asks
// for; sorted by name. The slice is the same each time and must not be changed.
func (w *Work) Specs() []*lathe.ToolSpec { return w.advertised().specs }

func (w *Work) advertised() *surface {
	if w.surface != nil {
		return w.surface
	}
	var space [32]*lathe.ToolSpec
	specs := space[:0]
	w.withheld = w.withheld[:0]
	for _, e := range w.tools.sorted {
		if e.spec.Hidden || !w.may(e.spec.Name) || !e.spec.For(w.info.Principal) {
			continue
		}
		if held := w.holdBack(e); held.Reason != "" {
			w.withheld = append(w.withheld, held)
			continue
		}
		specs = append(specs, e.spec)
	}
	if len(w.client) > 0 {
		for _, spec := range w.client {
			specs = append(specs, spec)
		}
		slices.SortFunc(specs, func(a, b *lathe.ToolSpec) int { return strings.Compare(a.Name, b.Name) })
	}
	w.surface = w.r.surface.Load()
	if w.surface == nil || !slices.Equal(w.surface.specs, specs) {
		w.surface = newSurface(slices.Clone(specs))
		w.r.surface.Store(w.surface)
	}
	return w.surface
}

// holdBack returns why a tool is not offered, without a reason if it is. A tool that needs an approval is not offered
// if no approver is configured.
func (w *Work) holdBack(e *entry) lathe.WithheldTool {
	held := lathe.WithheldTool{Tool: e.spec.Name}
	switch {
	case w.tooDeep(e):
		held.Reason = lathe.WithheldDepth
		return held
	case e.spec.Owner == lathe.OwnerClient:
		return held
	}
	v := w.judgeTool(e.spec)
	switch {
	case v.Decision == lathe.Allow, v.Decision == lathe.Ask && w.r.opts.Approver != nil:
		return held
	case v.Decision == lathe.Ask && e.spec.Effect == lathe.EffectUndeclared:
		held.Reason = lathe.WithheldUndeclared
	case v.Decision == lathe.Ask:
		held.Reason = lathe.WithheldApproval
	default:
		held.Reason = lathe.WithheldPolicy
	}
	held.Rule = v.Rule
	return held
}

// Withheld returns the registered tools that the run may use and that its model is not offered, sorted by name, with the
// reason.
func (w *Work) Withheld() []lathe.WithheldTool {
	w.advertised()
	return slices.Clone(w.withheld)
}

func newSurface(specs []*lathe.ToolSpec) *surface {
	s := &surface{specs: specs}
	s.names = append(s.names, '[')
	for i, spec := range s.specs[:min(len(s.specs), maxNames)] {
		if i > 0 {
			s.names = append(s.names, ',')
		}
		s.names = appendString(s.names, spec.Name)
	}
	s.names = append(s.names, ']')
	return s
}

// has returns the tool of the set, as far as the principal of the run has it.
func (w *Work) has(name string) *entry {
	if e := w.tools.byName[name]; e != nil && e.spec.For(w.info.Principal) {
		return e
	}
	return nil
}

// may reports whether the run may use the tool of the set at all.
func (w *Work) may(name string) bool { return w.allow == nil || w.allow[name] }
