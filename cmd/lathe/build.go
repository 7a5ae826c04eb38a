package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/audit"
	"github.com/lathe-run/lathe/config"
	"github.com/lathe-run/lathe/dialect"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/sim"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/builtin"
)

// This file is the only place where configuration becomes parts.

const defaultConfigFile = "lathe.yaml"

// findConfig returns the file that --config names, else lathe.yaml if it exists, else "".
func findConfig(path string) (string, error) {
	if path != "" {
		return path, nil
	}
	if _, err := os.Stat(defaultConfigFile); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	} else if err != nil {
		return "", &exitError{exitConfig, err}
	}
	return defaultConfigFile, nil
}

// loadConfig reads the file that --config names, else lathe.yaml where it is.
func loadConfig(path string, overrides []config.Override) (*config.Config, error) {
	path, err := findConfig(path)
	if err != nil {
		return nil, err
	}
	cfg, err := config.Load(path, &config.LoadOptions{Environ: os.Environ(), Overrides: overrides, Tools: builtin.Names(),
		Dialects: append([]string{provider.NativeDialect}, dialect.Names()...), Expand: expandModel, Check: checkParts})
	if err != nil {
		return nil, configError(err)
	}
	return cfg, nil
}

// checkParts says what only the parts can tell of a configuration.
func checkParts(cfg *config.Config, dir string) []config.Problem {
	return append(checkPolicy(cfg), checkTools(cfg, dir)...)
}

// configPath returns the file that --config names.
func configPath(cmd *cobra.Command) string {
	path, _ := cmd.Flags().GetString("config") // it is defined for every command
	return path
}

// absolute returns the path from the root, for what is read relative to another folder.
func absolute(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", &exitError{exitFailed, err}
	}
	return abs, nil
}

// buildModel makes the model that answers. The simulated one is reached over the wire, too, by a
// transport that stays in this process.
func buildModel(m *config.Model, simOpts *sim.Options, log *slog.Logger) (lathe.Model, error) {
	name := m.Model
	if name == "" {
		name = m.Name
	}
	opts := &provider.Options{
		Name:                m.Label,
		BaseURL:             m.BaseURL.Reveal(),
		Key:                 m.Key.Secret(),
		Headers:             map[string]provider.Secret{},
		ClientTimeout:       m.ClientTimeout,
		OpenTimeout:         m.OpenTimeout,
		ReadTimeout:         m.ReadTimeout,
		LoadingTimeout:      m.LoadingTimeout,
		Retry:               provider.Retry{Attempts: m.MaxAttempts},
		ReasoningField:      m.ReasoningField,
		NoUsage:             !m.IncludeUsage,
		MaxCompletionTokens: m.MaxCompletionTokens,
		NoTools:             !m.SupportsTools,
		NoParallel:          !m.SupportsParallel,
		MaxLineBytes:        m.MaxLineBytes,
		MaxEventBytes:       m.MaxEventBytes,
		Log:                 log,
	}
	if opts.ReasoningField == "" && writesHarmony(m.Dialect, name) {
		opts.ReasoningField = "reasoning_content" // analysis belongs to a turn until it is answered
	}
	for k, v := range m.Headers {
		opts.Headers[k] = v.Secret()
	}
	if m.Provider == "sim" {
		server := sim.New(simOpts)
		if err := knownSimulated(server, name); err != nil {
			return nil, err
		}
		if _, written, isText := strings.Cut(name, "+"); isText && written != provider.NativeDialect {
			if _, err := lookupDialect(written); err != nil {
				return nil, &exitError{exitUsage, fmt.Errorf("no simulated model %q: %w", name, err)}
			}
		}
		opts.BaseURL = "http://sim.invalid/v1"
		opts.Transport = server.Transport()
	}
	if opts.Name == "" {
		opts.Name = m.Provider
		if isSimulated(name) {
			opts.Name = sim.Provider // wherever it runs, it is simulated
		}
	}
	model, err := provider.OpenAI(name, opts)
	if err != nil {
		return nil, &exitError{exitConfig, fmt.Errorf("model %s: %w", m.Name, causeOf(err))}
	}
	return model, nil
}

func writesHarmony(dialectName, model string) bool {
	if dialectName == "auto" {
		dialectName, _ = dialect.ForModel(model)
	}
	return dialectName == "harmony"
}

// buildDialect has model speak the dialect of its entry, over the transforms that its server needs.
func buildDialect(model lathe.Model, m *config.Model, cfg *config.Config) (lathe.Model, error) {
	model, err := buildTransforms(model, m, cfg)
	if err != nil {
		return nil, err
	}
	model, err = provider.WithDialect(model, m.Dialect, &provider.DialectOptions{
		MaxPayloadBytes:       cfg.Limits().MaxPayloadBytes,
		AllowDeprecatedSyntax: cfg.ToolCalling.AllowDeprecatedSyntax,
		ShowUnreadableCalls:   cfg.ToolCalling.ShowUnreadableCalls,
		RecoverLeakedCalls:    m.RecoverLeakedCalls,
	})
	if err != nil {
		return nil, &exitError{exitConfig, fmt.Errorf("model %s: %w", m.Name, causeOf(err))}
	}
	return model, nil
}

// buildSim reads the scripts that the configuration names and adds the one of the command line.
func buildSim(cfg *config.Config, configPath, script, replay string) (*sim.Options, error) {
	opts, err := simOptions(script, replay)
	if err != nil {
		return nil, err
	}
	opts.TokenDelay = cfg.Sim.TokenDelay
	for _, name := range slices.Sorted(maps.Keys(cfg.Sim.Scripts)) {
		path := cfg.Sim.Scripts[name]
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(configPath), path)
		}
		one, err := simOptions(path, "")
		if err != nil {
			return nil, &exitError{exitConfig, fmt.Errorf("sim.scripts.%s: %w", name, err)}
		}
		if opts.Scripts == nil {
			opts.Scripts = map[string]*sim.Script{}
		}
		opts.Scripts[name] = one.Scripts[""]
	}
	return opts, nil
}

// builtinTools are all built-in tools by name. Those that need a state share one that lives as long
// as the process; `all` leaves them out, since only a test or an evaluation looks at that state.
func builtinTools() (all []string, byName map[string]lathe.Tool) {
	byName = map[string]lathe.Tool{}
	for _, t := range builtin.Tools(nil) {
		all = append(all, t.Spec().Name)
		byName[t.Spec().Name] = t
	}
	ws, err := builtin.NewWorkspace(nil)
	if err != nil {
		panic(err) // an empty workspace is always good
	}
	for _, t := range ws.Tools() {
		byName[t.Spec().Name] = t
	}
	return all, byName
}

// checkTools says what is wrong with the tools that a configuration describes.
func checkTools(cfg *config.Config, dir string) []config.Problem {
	tools, problems := httpTools(cfg)
	offered, bad := buildCatalog(cfg, dir)
	offered.close()
	known := slices.Clone(builtin.Names())
	for _, t := range tools {
		known = append(known, t.Spec().Name)
	}
	return slices.Concat(problems, checkServers(cfg), bad, checkAgents(cfg, known), checkPolicyNames(cfg, tools, offered.names()))
}

// buildTools makes the set of tools that the configuration enables, for commands that run no agents.
func buildTools(cfg *config.Config) (*tool.Set, error) { return buildToolsWith(cfg, nil) }

// buildToolsWith is buildTools with what runs the agents among the tools.
func buildToolsWith(cfg *config.Config, running *agents) (*tool.Set, error) {
	all, byName := builtinTools()
	names := cfg.Tools.Builtin
	if slices.Equal(names, []string{"all"}) {
		names = all
	}
	var tools []lathe.Tool
	for _, name := range names {
		t, ok := byName[name]
		if !ok {
			return nil, &exitError{exitConfig, fmt.Errorf("tools.builtin: no tool %q, there are %s", name, strings.Join(builtin.Names(), ", "))}
		}
		tools = append(tools, t)
	}
	overHTTP, problems := httpTools(cfg)
	if len(problems) > 0 {
		return nil, &exitError{exitConfig, config.Problems(problems)}
	}
	tools = append(tools, overHTTP...)
	asTools, err := running.tools(cfg)
	if err != nil {
		return nil, err
	}
	tools = append(tools, asTools...)
	set, err := tool.NewSetWithin(cfg.Limits(), tools...)
	if err != nil {
		return nil, &exitError{exitConfig, causeOf(err)}
	}
	return set, nil
}

// noTool says that the set has no such tool, and how to get it where Lathe has it.
func noTool(where, name string, set *tool.Set) error {
	if slices.Contains(builtin.Names(), name) {
		return usageError("%sthe tool %s comes with Lathe but is not enabled: name it in tools.builtin of lathe.yaml", where, name)
	}
	var names []string
	for _, sp := range set.Specs() {
		names = append(names, sp.Name)
	}
	return usageError("%sno tool %q: %s", where, name, didYouMean(name, names, "`lathe tools list` names them"))
}

// buildRunner puts set, policy and approver together.
func buildRunner(cfg *config.Config, set *tool.Set, approver lathe.Approver, trail *audit.Log, log *slog.Logger) *tool.Runner {
	return buildRunnerUnder(buildPolicy(cfg), cfg, set, approver, trail, log)
}

// buildRunnerUnder is buildRunner with a policy that is made of the configured one.
func buildRunnerUnder(p lathe.Policy, cfg *config.Config, set *tool.Set, approver lathe.Approver, trail *audit.Log, log *slog.Logger) *tool.Runner {
	return tool.NewRunner(set, runnerOptions(p, cfg, approver, trail, log))
}

func runnerOptions(p lathe.Policy, cfg *config.Config, approver lathe.Approver, trail *audit.Log, log *slog.Logger) *tool.Options {
	opts := &tool.Options{
		Policy:   p,
		Approver: approver,
		Settings: cfg.Settings(),
		Limits:   cfg.Limits(),
		HashMode: tool.HashMode(cfg.Telemetry.ArgsPreviewHash),
		HashKey:  []byte(cfg.Telemetry.ArgsPreviewKey.Reveal()),
		Log:      log,
		Secrets:  buildSecrets(cfg),
		Circuit:  tool.Circuit{Failures: circuitFailures(cfg), OpenFor: cfg.Tools.Circuit.OpenFor},
		Retry:    tool.Retry{Attempts: cfg.Tools.Retry.Attempts, Backoff: cfg.Tools.Retry.Backoff},
	}
	if trail != nil {
		opts.Journal = trail.Call
	}
	return opts
}

// circuitFailures is negative where the circuit never opens.
func circuitFailures(cfg *config.Config) int {
	if cfg.Tools.Circuit.Failures == 0 {
		return -1
	}
	return cfg.Tools.Circuit.Failures
}

// logFormatFlag adds --log-format.
func logFormatFlag(cmd *cobra.Command, format *string) {
	cmd.Flags().StringVar(format, "log-format", "text", "write log lines as `form`: text, or json")
}

// buildLog logs to w from the level up; "" logs nothing. The format is text where it is empty.
func buildLog(w io.Writer, level, format string) (*slog.Logger, error) {
	if format != "" && format != "text" && format != "json" {
		return nil, usageError("--log-format %q: want text or json", format)
	}
	if level == "" {
		return slog.New(slog.DiscardHandler), nil
	}
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, usageError("--log %q: want debug, info, warn or error", level)
	}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: l})), nil
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: l})), nil
}
