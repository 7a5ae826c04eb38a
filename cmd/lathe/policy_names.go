package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/config"
	"github.com/lathe-run/lathe/internal/nearest"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/builtin"
)

// checkPolicyNames refuses names in policy.tools that are nearly one of a tool: what was meant would
// be decided by nothing. A name that is like no other may be of a tool that comes later.
func checkPolicyNames(cfg *config.Config, tools []lathe.Tool, offered []string) (out []config.Problem) {
	if cfg.Tools.WASM.Dir != "" || len(cfg.Workers) > 0 {
		return nil // whose tools are not known yet
	}
	known := slices.Concat(builtin.Names(), offered)
	for _, t := range tools {
		known = append(known, t.Spec().Name)
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Policy.Tools)) {
		server, _, of := strings.Cut(name, "__")
		if slices.Contains(known, name) || of && cfg.Tools.MCP[server] != nil {
			continue
		}
		if of {
			servers := append(slices.Sorted(maps.Keys(cfg.Tools.MCP)), "resource", "prompt")
			if near := nearest.Word(server, servers); near != "" && near != server {
				out = append(out, config.Problem{Key: "policy.tools." + name, Message: fmt.Sprintf("there is no server %q, did you mean %s?", server, near)})
				continue
			}
		}
		if near := nearest.Word(name, known); near != "" {
			out = append(out, config.Problem{Key: "policy.tools." + name, Message: fmt.Sprintf("there is no tool %q, did you mean %s?", name, near)})
		}
	}
	return out
}

// policyNotes are the names in policy.tools that are of no tool now.
func policyNotes(cfg *config.Config, set *tool.Set, configPath string) (out []string) {
	offered, _ := buildCatalog(cfg, configDir(configPath))
	offered.close()
	for _, name := range slices.Sorted(maps.Keys(cfg.Policy.Tools)) {
		if _, ok := set.Lookup(name); !ok && !slices.Contains(offered.names(), name) && !slices.Contains(builtin.Names(), name) {
			out = append(out, "policy.tools names "+name+", and there is no such tool now: a server, module or guest may bring it later")
		}
	}
	return out
}
