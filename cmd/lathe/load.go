package main

import (
	"errors"
	"io/fs"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/builtin"
)

const defaultConfigFile = "lathe.yaml"

// findConfig returns path, the value of --config. If path is "", it returns lathe.yaml if that exists, else "".
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

// loadConfig reads the file at path or, if path is "", lathe.yaml if it exists.
func loadConfig(path string, overrides []config.Override) (*config.Config, error) {
	path, err := findConfig(path)
	if err != nil {
		return nil, err
	}
	cfg, err := app.LoadConfig(path, &app.LoadOptions{Overrides: overrides})
	if errors.Is(err, fs.ErrNotExist) && len(config.ProblemsOf(err)) == 0 {
		return nil, exit(exitConfig, "there is no configuration file %s: check --config, or write one: lathe --config %s init", path, path)
	}
	if err != nil {
		return nil, configError(err)
	}
	return cfg, nil
}

// configOf reads the configuration that --config selects.
func configOf(cmd *cobra.Command) (*config.Config, error) { return loadConfig(configPath(cmd), nil) }

// configPath returns the value of --config.
func configPath(cmd *cobra.Command) string {
	path, _ := cmd.Flags().GetString("config") // every command has this flag
	return path
}

// configuredTools returns the configuration and the tools that it enables.
func configuredTools(cmd *cobra.Command) (*config.Config, *tool.Set, error) {
	cfg, err := configOf(cmd)
	if err != nil {
		return nil, nil, err
	}
	set, err := app.NewToolSet(cfg)
	return cfg, set, err
}

// noTool returns a usage error for an unknown tool, with advice if the tool is built in but not enabled.
func noTool(where, name string, set *tool.Set) error {
	if slices.Contains(builtin.Names(), name) {
		return usageError("%sthe tool %s comes with Lathe but is not enabled: name it in tools.builtin of lathe.yaml", where, name)
	}
	var names []string
	for _, sp := range set.Specs() {
		names = append(names, sp.Name)
	}
	return usageError("%sno tool %q: %s", where, name, text.Suggest(name, names, "`lathe tools list` names them"))
}
