package tool

import (
	"errors"
	"fmt"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/setting"
	"github.com/lathe-run/lathe/internal/text"
)

// RunOptions replace options of the runner for one run. A caller that gets values from a client must check them first.
type RunOptions struct {
	Settings *lathe.Settings // nil: those of the runner
	Limits   *lathe.Limits   // nil: those of the runner
	// ClientTools are the tools that the caller declares and executes. Execute returns calls of them in Outcome.Pending. If the set has a
	// tool of the same name, calls are of the tool of the set. But if the client's tool is disallowed and Allow excludes that of the set,
	// the client's definition is sent, and a call is one of an unknown tool.
	ClientTools []*lathe.ToolSpec
	// Allow, if not nil, lists the only tools of the set that the run may use. Any other tool is unknown to the run.
	Allow []string
	// AllowAbsent permits names in Allow of which the set has no tool now. Otherwise Check returns an error for such a name.
	AllowAbsent bool
	// Defer allows the run to defer its tools according to the [Search] of the set. If it is false, the definitions of all tools are sent,
	// and there is no search.
	Defer bool
	// HandOver treats calls of unknown names as calls of client tools, because the client has already received them.
	HandOver bool
	// History is the conversation at the start of the run. New calls get other ids than the calls in it.
	History []lathe.Message
	// Resumed, if not nil, is the state of the run that is resumed.
	Resumed *Resumed
	// Suspend, if set, is called by Execute before a call, or a group of concurrent calls, is started: with the first call and the
	// definition of its tool, which is nil for a client's or an unknown tool. If it returns true, Execute returns with Outcome.Suspended.
	// It is not called for calls without an effect, or those that were started before.
	Suspend func(call *lathe.ToolCall, spec *lathe.ToolSpec) bool
}

// Begin starts the work of one run, with the tools that the set has now. It is cheap until tools are listed or called. Policies receive
// run, which must not change until the run has ended; nil is a run without an id.
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

// Check returns an error if a run cannot start with these options: because of a client tool with an invalid or duplicate name, a name in
// Allow of which the set has no tool, unless AllowAbsent is set, or more definitions than the limits allow. The error is a *[lathe.Error] of code invalid_request, or of code too_many_tools with a
// [*DefinitionsError].
func (r *Runner) Check(run *lathe.RunInfo, opts *RunOptions) error {
	return r.Begin(run, opts).Check(opts)
}

// Check does the checks of [Runner.Check] for the run of w. opts must be those of [Runner.Begin]. It does not call the policy again.
func (w *Work) Check(opts *RunOptions) error {
	err := w.checkClient(opts)
	if err == nil {
		err = checkAllow(&w.tools, opts)
	}
	if err != nil {
		return lathe.CodeInvalidRequest.Wrap("tool: begin", err)
	}
	shown := w.tools.advertise()
	if err := exceeded(shown.specs, shown.size(), w.limits); err != nil {
		w.tools.explain(err)
		return lathe.CodeTooManyTools.Wrap("tool: begin", err)
	}
	return nil
}

// maxToldTools is the maximum number of tools that one error names.
const maxToldTools = 10

// checkAllow returns an error for the first name in Allow of which neither the set nor the client has a tool.
func checkAllow(v *view, opts *RunOptions) error {
	if opts == nil || opts.AllowAbsent {
		return nil
	}
	for _, name := range opts.Allow {
		if v.registry.byName[name] != nil || v.client[name] != nil || name == SearchName {
			continue
		}
		var names []string
		for _, e := range v.registry.sorted {
			if v.has(e.spec.Name) != nil {
				names = append(names, e.spec.Name)
			}
		}
		has := "it has no tools"
		if len(names) > 0 {
			has = "it has " + strings.Join(names[:min(len(names), maxToldTools)], ", ")
		}
		if len(names) > maxToldTools {
			has += fmt.Sprintf(" and %d more", len(names)-maxToldTools)
		}
		return fmt.Errorf("the list Allow has %.80q, and the set of the runner has no tool of this name: %s", name, text.Suggest(name, names, has))
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
