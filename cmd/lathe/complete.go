package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lathe-run/lathe/dialect"
	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/sim"
	"github.com/lathe-run/lathe/store"
)

// Completions offer names in the current configuration. If it cannot be read, they offer nothing.

// completions maps the values of the tag complete to completions of flag values.
var completions = map[string]cobra.CompletionFunc{
	"nothing": cobra.NoFileCompletions,
	"folders": func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	},
	"models":     completeModels,
	"tools":      completeTools,
	"dialects":   words(append([]string{provider.NativeDialect}, dialect.Names()...)...),
	"written":    words(dialect.Names()...),
	"presets":    completePresets,
	"categories": completeCategories,
}

// completeFlag sets the completion of a flag: a name in completions, or a list of words.
func completeFlag(cmd *cobra.Command, flag, how string) {
	complete, ok := completions[how]
	if !ok {
		complete = words(strings.Fields(how)...)
	}
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err) // cannot happen: the flag is defined
	}
}

// words returns a completion that offers these words.
func words(list ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp)
}

func completeModels(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	names := sim.New(nil).Names()
	if cfg, err := configOf(cmd); err == nil {
		names = slices.AppendSeq(names, maps.Keys(cfg.Models))
	}
	slices.Sort(names)
	return names, cobra.ShellCompDirectiveNoFileComp
}

func completeTools(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if cfg, err := configOf(cmd); err == nil {
		if set, err := app.NewToolSet(cfg); err == nil {
			for _, sp := range set.Specs() {
				names = append(names, sp.Name)
			}
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeSource completes the first argument with the sources of tools that have a login.
func completeSource(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if cfg, err := configOf(cmd); err == nil && len(args) == 0 {
		for name, c := range cfg.Tools.MCP {
			if !c.URL.IsZero() && !app.HasAuthorization(c.Headers) {
				names = append(names, name)
			}
		}
		for name, c := range cfg.Tools.HTTP {
			if c.Call.OAuth.IsSet() {
				names = append(names, name)
			}
		}
		for name, c := range cfg.Tools.OpenAPI {
			if c.Call.OAuth.IsSet() {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names, cobra.ShellCompDirectiveNoFileComp
}

// first returns a completion that offers what complete does, for the first argument only.
func first(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, word)
	}
}

// maxOfferedRuns is the largest number of runs that a completion offers, the newest first.
const maxOfferedRuns = 50

// completionTimeout limits the time of a request to a gateway for a completion.
const completionTimeout = 2 * time.Second

// completeRuns offers run ids, described by state and start. The runs are those of --store, of --server, or of
// the gateway at the default address.
func completeRuns(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
	const no = cobra.ShellCompDirectiveNoFileComp
	value := func(name string) string {
		if f := cmd.Flags().Lookup(name); f != nil {
			return f.Value.String()
		}
		return ""
	}
	server := serverFlags{serverFlag{value("server")}, value("key-file"), value("key-env")}
	quiet := &cobra.Command{}
	quiet.SetErr(io.Discard) // notes would appear in the line being completed
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	quiet.SetContext(ctx)
	src, err := openRuns(quiet, &server, value("store"))
	if err != nil {
		return nil, no
	}
	defer func() { _ = src.close() }() // the source was only read
	rows, _, err := src.list(ctx, &store.RunFilter{Limit: maxOfferedRuns}, &store.RunQuery{})
	if err != nil {
		return nil, no
	}
	var out []string
	for _, r := range rows {
		if strings.HasPrefix(r.RunID, word) {
			out = append(out, fmt.Sprintf("%s\t%s, %s, %s", r.RunID, r.Status, printable(r.Model), timeText(r.Started)))
		}
	}
	return out, no | cobra.ShellCompDirectiveKeepOrder
}

// enumFlags maps flags that several commands have to their allowed words.
var enumFlags = map[string][]string{
	"log":        {"debug", "info", "warn", "error"},
	"log-format": {"text", "json"},
	"status":     runStatuses,
	"wire":       strings.Split(wireNames, ", "),
}

// completeEnums sets the completions of flags with allowed words, including settings, and of RUN arguments, for a command and all its
// subcommands.
func completeEnums(cmd *cobra.Command) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if _, known := cmd.GetFlagCompletionFunc(f.Name); known {
			return
		}
		list := enumFlags[f.Name]
		if v, ok := f.Value.(*settingValue); ok {
			list = v.setting.Words
		}
		if len(list) > 0 {
			completeFlag(cmd, f.Name, strings.Join(list, " "))
		}
	})
	if use := strings.Fields(cmd.Use); len(use) > 1 && use[1] == "RUN" && cmd.ValidArgsFunction == nil {
		cmd.ValidArgsFunction = first(completeRuns)
	}
	for _, c := range cmd.Commands() {
		completeEnums(c)
	}
}
