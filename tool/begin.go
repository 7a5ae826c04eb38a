package tool

import (
	"errors"
	"fmt"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/setting"
)

// RunOptions override the runner's options for one run. A caller that gets the values from a client must check them first.
type RunOptions struct {
	Settings *lathe.Settings // nil: the runner's
	Limits   *lathe.Limits   // nil: the runner's
	// ClientTools are the tools that the caller declares and executes itself. Execute returns calls to them in
	// Outcome.Pending. If the set has a tool of the same name, a call means the tool of the set; but if the client's is disallowed and Allow
	// leaves that of the set out, its definition is sent where that of the set would be, and a call is one to an unknown tool.
	ClientTools []*lathe.ToolSpec
	// Allow, when not nil, names the only tools of the set that the run may use. The others are unknown to it.
	Allow []string
	// Defer lets the run defer its tools as the search of the set says: see [Search]. Without it, the definitions of all
	// tools are listed, and there is no search.
	Defer bool
	// HandOver makes calls to unknown names calls to client tools: the client has received them already.
	HandOver bool
	// History is the conversation that the run starts from. New calls do not get the ids of the calls in it.
	History []lathe.Message
	// Resumed, when set, is the state of the run that is resumed.
	Resumed *Resumed
	// Suspend, when set, is called by Execute before a call, or a group of calls that run side by side, is begun: with the first
	// call and the definition of its tool, nil for a client's or an unknown one. If it returns true, Execute returns with
	// Outcome.Suspended. It is not called for calls that will have no effect, or that were begun before.
	Suspend func(call *lathe.ToolCall, spec *lathe.ToolSpec) bool
}

// Begin opens the work of one run, over the tools that the set has now. It costs little until tools are listed or
// called. Policies get run, which must not change until the run has ended; nil is a run without a name.
func (r *Runner) Begin(run *lathe.RunInfo, opts *RunOptions) *Work {
	if run == nil {
		run = &lathe.RunInfo{}
	}
	w := &Work{r: r, info: run, settings: r.opts.Settings, limits: r.opts.Limits, secrets: runSecrets{store: r.secrets}}
	if opts != nil {
		if opts.Settings != nil {
			w.settings = *opts.Settings
		}
		if opts.Limits != nil {
			w.limits = *opts.Limits
		}
		for i := range opts.History {
			for _, p := range opts.History[i].Parts {
				if c, ok := p.(lathe.ToolCall); ok {
					w.ids.set(c.ID, idTaken)
				}
			}
		}
	}
	setting.Fill(&w.limits)
	w.tools.open(r, run, opts, &w.settings, &w.limits)
	if opts != nil {
		w.suspend = opts.Suspend
		w.resume(opts.Resumed)
		w.remember(opts)
	}
	return w
}

// Check says whether a run may be begun with these options: client tools with good names of their
// own, and not more definitions than the limits allow. The error is a *[lathe.Error] of code
// invalid_request, or of code too_many_tools with a [*DefinitionsError].
func (r *Runner) Check(run *lathe.RunInfo, opts *RunOptions) error {
	return r.Begin(run, opts).Check(opts)
}

// Check makes the checks of [Runner.Check] for the run of w. opts are those that were passed to [Runner.Begin]. Check does not ask the
// policy again.
func (w *Work) Check(opts *RunOptions) error {
	if err := w.checkClient(opts); err != nil {
		return &lathe.Error{Code: lathe.CodeInvalidRequest, Op: "tool: begin", Err: err}
	}
	shown := w.tools.advertise()
	if err := exceeded(shown.specs, shown.size(), w.limits); err != nil {
		w.tools.explain(err)
		return &lathe.Error{Code: lathe.CodeTooManyTools, Op: "tool: begin", Err: err}
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
		case w.tools.has(spec.Name) != nil && (!spec.Disallowed || w.tools.may(spec.Name)):
			return fmt.Errorf("the tool name %s is taken: one tool is from %s, the other from the request", spec.Name, origin(w.tools.has(spec.Name).spec))
		case seen[spec.Name]:
			return fmt.Errorf("the tool %s is declared twice", spec.Name)
		}
		seen[spec.Name] = true
	}
	return nil
}
