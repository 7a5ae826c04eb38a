package app

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/policy/rules"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/builtin"
)

// checkPolicy returns the problems of the rules and labels of a configuration.
func checkPolicy(cfg *config.Config) []config.Problem {
	out := append(checkLabels(cfg), checkGrants(cfg)...)
	list := policyRules(cfg)
	_, err := rules.New(list, nil)
	var found rules.Problems
	if !errors.As(err, &found) {
		return out
	}
	for _, p := range found {
		key := "policy.rules"
		if p.Rule < len(list) {
			key = list[p.Rule].Source + "." + p.Field
		}
		where := ""
		if p.Line > 0 {
			where = fmt.Sprintf("line %d, column %d: ", p.Line, p.Column)
		}
		out = append(out, problem(key, "%s%s", where, p.Message))
	}
	return out
}

// checkLabels reports labels that are similar to one that guards use: a guard would ignore a misspelt label. Other labels are defined by
// the operator.
func checkLabels(cfg *config.Config) (out []config.Problem) {
	known := []string{lathe.LabelReadsPrivate, lathe.LabelReadsUntrusted, lathe.LabelCanExfiltrate}
	for pattern, labels := range text.ByName(cfg.Policy.Labels) {
		for _, label := range labels {
			if near := text.Nearest(label, known); near != "" && !slices.Contains(known, label) {
				out = append(out, problem("policy.labels", "%s: unknown label %q, did you mean %s?", pattern, label, near))
			}
		}
	}
	return out
}

// checkGrants reports granted secrets that do not exist: the tool would not receive the intended secret.
func checkGrants(cfg *config.Config) (out []config.Problem) {
	known := append(slices.Sorted(maps.Keys(cfg.KnownSecrets())), secret.Found)
	for pattern, granted := range text.ByName(cfg.Secrets.Grants) {
		for _, name := range granted {
			if slices.Contains(known, name) {
				continue
			}
			advice := ""
			if near := text.Nearest(name, known); near != "" {
				advice = fmt.Sprintf(", did you mean %s?", near)
			}
			out = append(out, problem("secrets.grants", "%s: there is no secret %q%s", pattern, name, advice))
		}
	}
	return out
}

// checkPolicyNames reports names in policy.tools that are similar to a tool: the decision for a misspelt name would have no effect. Other
// unknown names may be tools that are added later.
func checkPolicyNames(cfg *config.Config, tools []lathe.Tool, offered []string) (out []config.Problem) {
	if cfg.Tools.WASM.Dir != "" || len(cfg.Workers) > 0 {
		return nil // the tools of modules and workers are not known yet
	}
	known := slices.Concat(builtin.Names(), offered)
	for _, t := range tools {
		known = append(known, t.Spec().Name)
	}
	servers := append(slices.Sorted(maps.Keys(cfg.Tools.MCP)), "resource", "prompt")
	for name := range text.ByName(cfg.Policy.Tools) {
		if _, _, ok := cfg.Tools.MCPTool(name); ok || slices.Contains(known, name) {
			continue
		}
		report := func(format string, args ...any) { out = append(out, problem("policy.tools."+name, format, args...)) }
		server, remote, ofServer := strings.Cut(name, "__")
		nearServer, nearTool := text.Nearest(server, servers), text.Nearest(name, known)
		switch {
		case ofServer && cfg.Tools.MCP[server] != nil:
			report("the tool is called %s since tools.mcp.%s.rename", cfg.Tools.MCP[server].Rename[remote], server)
		case ofServer && nearServer != "" && nearServer != server:
			report("there is no server %q, did you mean %s?", server, nearServer)
		case nearTool != "":
			report("there is no tool %q, did you mean %s?", name, nearTool)
		}
	}
	return out
}

// UnknownPolicyTools returns the names in policy.tools that no tool, resource or prompt has at present. A server, a module or a guest may
// add one later.
func UnknownPolicyTools(cfg *config.Config, set *tool.Set) (out []string) {
	offered, _ := buildCatalog(cfg)
	offered.Close()
	for name := range text.ByName(cfg.Policy.Tools) {
		if _, ok := set.Lookup(name); !ok && !slices.Contains(offered.Names(), name) && !slices.Contains(builtin.Names(), name) {
			out = append(out, name)
		}
	}
	return out
}
