package app

import (
	"os"
	"slices"

	"github.com/lathe-run/lathe/dialect"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/tool/builtin"
)

// LoadOptions are the options of [LoadConfig]. The zero value is usable.
type LoadOptions struct {
	// Environ is the environment for ${NAME} and LATHE_ variables, as os.Environ returns it. nil: that of the process; empty: no variables.
	Environ []string
	// Overrides are applied in order, after the file and the environment.
	Overrides []config.Override
}

// LoadConfig reads the configuration file at path ("": none), and checks what can be checked without connections and processes.
// [config.ProblemsOf] lists the problems in the error. opts may be nil.
func LoadConfig(path string, opts *LoadOptions) (*config.Config, error) {
	if opts == nil {
		opts = &LoadOptions{}
	}
	return config.Load(path, &config.LoadOptions{Environ: environOf(opts.Environ), Overrides: opts.Overrides, Tools: builtin.Names(),
		Dialects: append([]string{provider.NativeDialect}, dialect.Names()...), Expand: expandModel, Check: checkParts})
}

// checkParts returns the problems of policies and tools. Relative paths of the configuration are relative to [config.Config.Dir].
func checkParts(cfg *config.Config, _ string) []config.Problem {
	return append(checkPolicy(cfg), checkTools(cfg)...)
}

// checkTools returns the problems of the tools in a configuration.
func checkTools(cfg *config.Config) []config.Problem {
	tools, problems, warnings := httpTools(cfg, checkedDocuments(cfg))
	cfg.Warn(warnings...)
	activities, lacking := temporalTools(cfg, nil)
	tools = append(tools, activities...)
	offered, bad := buildCatalog(cfg)
	offered.Close()
	known := slices.Clone(builtin.Names())
	for _, t := range tools {
		known = append(known, t.Spec().Name)
	}
	return slices.Concat(problems, lacking, checkServers(cfg), bad, checkAgents(cfg, known), checkPolicyNames(cfg, tools, offered.Names()))
}

// environOf returns given, or the environment of the process if given is nil.
func environOf(given []string) []string {
	if given == nil {
		return os.Environ()
	}
	return given
}
