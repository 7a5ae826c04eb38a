package main

import (
	"context"
	"fmt"
	"io"
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

// Completion offers names that the configuration in force knows. Where it cannot be read, nothing is offered.

// completions are the ways to complete the value of a flag, by their names in the tag complete.
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

// completeFlag completes a flag of the command by a name of completions, or by words.
func completeFlag(cmd *cobra.Command, flag, how string) {
	complete, ok := completions[how]
	if !ok {
		complete = words(strings.Fields(how)...)
	}
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err) // the flag is not defined
	}
}

// words completes one of several words.
func words(list ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp)
}

func completeModels(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	names := sim.New(nil).Names()
	if cfg, err := loadConfig(configPath(cmd), nil); err == nil {
		for name := range cfg.Models {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, cobra.ShellCompDirectiveNoFileComp
}

func completeTools(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if cfg, err := loadConfig(configPath(cmd), nil); err == nil {
		if set, err := app.NewToolSet(cfg); err == nil {
			for _, sp := range set.Specs() {
				names = append(names, sp.Name)
			}
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeSource offers what may be logged in to, as the first argument.
func completeSource(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if cfg, err := loadConfig(configPath(cmd), nil); err == nil && len(args) == 0 {
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

// completeToolName offers a tool as the first argument.
func completeToolName(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completeTools(cmd, args, word)
}

// maxOfferedRuns is how many runs completion offers, the newest first.
const maxOfferedRuns = 50

// completionTimeout bounds the wait for a daemon that is asked for its runs.
const completionTimeout = 2 * time.Second

// completeRuns offers runs as the first argument, with their state and when they began: those of --store, of --server, or of
// the daemon at the usual address.
func completeRuns(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	const no = cobra.ShellCompDirectiveNoFileComp
	if len(args) > 0 {
		return nil, no
	}
	value := func(name string) string {
		if f := cmd.Flags().Lookup(name); f != nil {
			return f.Value.String()
		}
		return ""
	}
	server := serverFlags{serverFlag{value("server")}, value("key-file"), value("key-env")}
	quiet := &cobra.Command{}
	quiet.SetErr(io.Discard) // notes would stand in the line that is completed
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	quiet.SetContext(ctx)
	src, err := openRuns(quiet, &server, value("store"))
	if err != nil {
		return nil, no
	}
	defer func() { _ = src.close() }() // it was only read
	rows, _, err := src.list(ctx, &store.RunFilter{Limit: maxOfferedRuns}, &store.RunQuery{})
	if err != nil {
		return nil, no
	}
	var out []string
	for i := range rows {
		if r := &rows[i]; strings.HasPrefix(r.RunID, word) {
			out = append(out, fmt.Sprintf("%s\t%s, %s, %s", r.RunID, r.Status, printable(r.Model), timeText(r.Started)))
		}
	}
	return out, no | cobra.ShellCompDirectiveKeepOrder
}

// enumFlags are the flags whose values are words, wherever a command has them.
var enumFlags = map[string][]string{
	"log":        {"debug", "info", "warn", "error"},
	"log-format": {"text", "json"},
	"status":     runStatuses,
	"wire":       strings.Split(wireNames, ", "),
}

// completeEnums completes the values of flags that are words, settings included, and the runs that commands take, in a command
// and those below it.
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
		cmd.ValidArgsFunction = completeRuns
	}
	for _, c := range cmd.Commands() {
		completeEnums(c)
	}
}
