package tool

import (
	"errors"
	"fmt"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/setting"
	"github.com/lathe-run/lathe/internal/text"
)

// RunOptions configure one run. The runner does not validate Settings and Limits: the caller must validate values that come from a client.
type RunOptions struct {
	Settings *lathe.Settings // in place of those of the runner, as a whole; nil: those of the runner
	Limits   *lathe.Limits   // in place of those of the runner, as a whole: a zero field has its default; nil: those of the runner
	// ClientTools are tools that the caller executes, not the runner: Execute returns their calls in Outcome.Pending. If the run may use a
	// tool of the set with the same name, that tool is called instead. If Allow excludes the tool of the set and the client's tool is
	// Disallowed, the client's definition is sent to the model, and a call of it gets the result unknown_tool.
	ClientTools []*lathe.ToolSpec
	// Allow lists the only tools of the set that the run may use; any other gets the result unknown_tool. nil: all; empty: none.
	Allow []string
	// AllowAbsent permits names in Allow that the set does not have at present. If it is false, Check returns an error for such a name.
	AllowAbsent bool
	// Defer applies the [Search] of the set to the run: definitions may be withheld until the model searches for them. If it is false, all
	// definitions are sent, and the tool [SearchName] is not offered.
	Defer bool
	// HandOver treats calls of unknown names as calls of client tools, as if ClientTools contained them. A caller sets it if the client has
	// already received the calls.
	HandOver bool
	// History is the conversation at the start of the run. It is read for the ids of its calls, so that new calls get other ids, and for
	// the tools that a run with Defer has loaded.
	History []lathe.Message
	// Resumed is the state of the run from before it was resumed; nil: a new run.
	Resumed *Resumed
	// Suspend, if not nil, can stop Execute. Execute calls it on its own goroutine before it starts a call or a group of concurrent calls,
	// with the first of these calls and the definition of its tool; spec is nil for a client tool and for an unknown tool. If Suspend
	// returns true, Execute starts no further calls and returns with Outcome.Suspended. It does not call Suspend for a call with Refuse or
	// Begun, nor after a call of the same turn was parked.
	Suspend func(call *lathe.ToolCall, spec *lathe.ToolSpec) bool
}

// Begin returns the Work of one run, which uses the tools that the set has now. If opts.Defer is set, Begin calls the policy to determine
// the definitions; otherwise they are determined when they are first needed. run is passed to policies and must not change until the run
// has ended; nil is a run without an id. opts may be nil.
func (r *Runner) Begin(run *lathe.RunInfo, opts *RunOptions) *Work {
	if run == nil {
		run = &lathe.RunInfo{}
	}
	if opts == nil {
		opts = &RunOptions{}
	}
	w := &Work{r: r, info: run, settings: r.opts.Settings, limits: r.opts.Limits, secrets: runSecrets{store: r.secrets}, suspend: opts.Suspend}
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
	setting.Fill(&w.limits)
	w.tools.open(r, run, opts, &w.settings, &w.limits)
	w.resume(opts.Resumed)
	w.remember(opts)
	return w
}

// Check returns an error if a run cannot start with these options. The error has the code invalid_request for a client tool with an invalid
// or duplicate name, and for a name in Allow that the set does not have (unless AllowAbsent is set). It has the code too_many_tools, and
// wraps a [*DefinitionsError], for definitions beyond the limits max_tools and max_tools_bytes. run and opts may be nil, as in
// [Runner.Begin].
func (r *Runner) Check(run *lathe.RunInfo, opts *RunOptions) error {
	return r.Begin(run, opts).Check(opts)
}

// Check returns the error that [Runner.Check] would return for this run. opts must be those that were passed to [Runner.Begin]. Check and
// [Work.Specs] use the same definitions, so the policy is called only once for both.
func (w *Work) Check(opts *RunOptions) error {
	if opts == nil {
		opts = &RunOptions{}
	}
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
	if opts.AllowAbsent {
		return nil
	}
	for _, name := range opts.Allow {
		if v.registry.byName[name] != nil || v.client[name] != nil || name == SearchName {
			continue
		}
		var names []string
		for _, e := range v.registry.sorted {
			if v.ofSet(e.spec.Name) != nil {
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
	seen := map[string]bool{}
	for _, spec := range opts.ClientTools {
		switch {
		case spec == nil:
			return errors.New("a client tool is nil")
		case !validName(spec.Name):
			return fmt.Errorf("the tool name %.80q is not 1 to 64 of the characters a-z, A-Z, 0-9, _ and -", spec.Name)
		case w.tools.ofSet(spec.Name) != nil && (!spec.Disallowed || w.tools.allows(spec.Name)):
			return fmt.Errorf("the tool name %s is taken: one tool is from %s, the other from the request", spec.Name, origin(w.tools.ofSet(spec.Name).spec))
		case seen[spec.Name]:
			return fmt.Errorf("the tool %s is declared twice", spec.Name)
		}
		seen[spec.Name] = true
	}
	return nil
}
