package app

import (
	"context"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/builtin"
)

// Tools are all tools of a configuration, with the servers and modules that provide them. The caller must call Close.
type Tools struct {
	Set     *tool.Set
	Servers *Servers
	modules *Modules
}

// StartTools makes the tools of the configuration: those of [NewToolSet], [StartServers] and [StartModules]. If it returns no error, the
// caller must call Close.
func StartTools(ctx context.Context, cfg *config.Config, opts *ServerOptions) (*Tools, error) {
	return startTools(ctx, cfg, nil, nil, nil, opts)
}

func startTools(ctx context.Context, cfg *config.Config, running *agents, activity newTemporalTool, further []lathe.Tool, opts *ServerOptions) (_ *Tools, err error) {
	if opts == nil {
		opts = &ServerOptions{}
	}
	t := &Tools{}
	if t.Set, err = newToolSet(cfg, running, activity, further); err != nil {
		return nil, err
	}
	if t.Servers, err = StartServers(ctx, cfg, t.Set, opts); err != nil {
		return nil, err
	}
	if t.modules, err = StartModules(ctx, cfg, t.Set, opts.Log); err != nil {
		t.Servers.Close()
		return nil, err
	}
	return t, nil
}

// Close stops the servers and modules. No call may be in progress.
func (t *Tools) Close() {
	t.modules.Close()
	t.Servers.Close()
}

// builtinTools returns all built-in tools by name, and the names of those that tools.builtin enables. Tools that need a workspace share an empty one; `all`
// does not include them, because only tests and evaluations read the workspace.
func builtinTools(cfg *config.Config) (enabled []string, byName map[string]lathe.Tool, err error) {
	var all []string
	byName = map[string]lathe.Tool{}
	for _, t := range builtin.Tools(nil) {
		all = append(all, t.Spec().Name)
		byName[t.Spec().Name] = t
	}
	ws, err := builtin.NewWorkspace(nil)
	if err != nil {
		return nil, nil, failed(err)
	}
	for _, t := range ws.Tools() {
		byName[t.Spec().Name] = t
	}
	if enabled = cfg.Tools.Builtin; slices.Equal(enabled, []string{"all"}) {
		enabled = all
	}
	return enabled, byName, nil
}

// NewToolSet returns the tools that the configuration enables, and the further ones. [StartServers] and [StartModules] add tools of MCP
// servers and WebAssembly modules; [StartTools] does all three. Agents (tools.run) and tools on task queues (tools.temporal) are listed,
// but their calls fail: [New] and [OpenSession] make agents that run, and [New] makes tools on task queues, see [Options].TemporalTool.
func NewToolSet(cfg *config.Config, further ...lathe.Tool) (*tool.Set, error) {
	return newToolSet(cfg, nil, nil, further)
}

func newToolSet(cfg *config.Config, running *agents, activity newTemporalTool, further []lathe.Tool) (*tool.Set, error) {
	names, byName, err := builtinTools(cfg)
	if err != nil {
		return nil, err
	}
	var tools []lathe.Tool
	for _, name := range names {
		t, ok := byName[name]
		if !ok {
			return nil, invalidConfig("tools.builtin: no tool %q, there are %s", name, strings.Join(builtin.Names(), ", "))
		}
		tools = append(tools, t)
	}
	overHTTP, problems, _ := httpTools(cfg, takeDocuments(cfg))
	if len(problems) > 0 {
		return nil, configError(config.Problems(problems))
	}
	activities, problems := temporalTools(cfg, activity)
	if len(problems) > 0 {
		return nil, configError(config.Problems(problems))
	}
	asTools, err := running.tools(cfg)
	if err != nil {
		return nil, err
	}
	s := &cfg.Tools.Search
	set, err := tool.NewSetWithSearch(cfg.Limits(), tool.Search{Mode: tool.SearchMode(s.Mode), AboveTools: s.AboveTools, AboveBytes: s.AboveBytes, Always: s.Always,
		MaxLoaded: s.MaxLoaded, MaxDeferred: s.MaxDeferred, MaxDeferredBytes: s.MaxDeferredBytes}, slices.Concat(tools, overHTTP, activities, asTools, further)...)
	if err != nil {
		return nil, configError(Cause(err))
	}
	if problems := checkRenames(cfg, set); len(problems) > 0 {
		return nil, configError(config.Problems(problems))
	}
	return set, nil
}

// checkRenames reports renamed tools of MCP servers whose new name another tool has.
func checkRenames(cfg *config.Config, set *tool.Set) (problems []config.Problem) {
	for server, s := range text.ByName(cfg.Tools.MCP) {
		for remote, to := range text.ByName(s.Rename) {
			if t, taken := set.Lookup(to); taken {
				problems = append(problems, problem("tools.mcp."+server+".rename."+remote, "the name %s is taken: the other tool is from %s", to, t.Spec().Origin))
			}
		}
	}
	return problems
}
