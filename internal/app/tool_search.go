package app

import (
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

// SearchWithheld returns the decision of the policy on the tool tool_search, and true if the decision is not Allow although tools.search is
// not off: runs then send the definitions of all tools. Rules by principal or labels can decide differently for a run.
func SearchWithheld(cfg *config.Config) (lathe.Decision, bool) {
	if cfg.Tools.Search.Mode == string(tool.SearchOff) {
		return lathe.Allow, false
	}
	pol, err := NewPolicy(cfg)
	if err != nil {
		return lathe.Deny, false // NewRunner returns the error
	}
	decision := pol.Tool(&lathe.RunInfo{}, &lathe.ToolSpec{Name: tool.SearchName, Effect: lathe.ReadOnly, Origin: "builtin"}).Decision
	return decision, decision != lathe.Allow
}

// checkDefinitions returns the error of a run without a principal if its tool definitions exceed a limit. It is also called if no model is
// configured; otherwise the loop of the model would return the same error.
func checkDefinitions(cfg *config.Config, runner *tool.Runner) error {
	if err := runner.Check(nil, &tool.RunOptions{Settings: new(cfg.Settings()), Limits: new(cfg.Limits()), Defer: true}); err != nil {
		return configError(Cause(err))
	}
	return nil
}

// RefusedKeys returns a line for each entry of keys whose runs are refused because the definitions of their tools exceed a limit, for
// example because policy does not allow tool_search. Keys of serve.keys_file are checked by their entry. Rules by labels can decide
// differently for a run. Without tools.search, [NewToolSet] refuses more tools than the limits allow.
func RefusedKeys(cfg *config.Config, set *tool.Set) (out []string) {
	if cfg.Tools.Search.Mode == string(tool.SearchOff) || len(cfg.Keys) == 0 {
		return nil
	}
	runner, err := NewRunner(cfg, set, &CallOptions{Approver: approval.NewQueue(nil)})
	if err != nil {
		return nil // the check of the configuration returns the error
	}
	for name, k := range text.ByName(cfg.Keys) {
		_, allow := cfg.Grants(name)
		limits, _ := cfg.Limits().Narrow(k.Limits)
		run := &lathe.RunInfo{Principal: name, Profile: name}
		if err := runner.Check(run, &tool.RunOptions{Allow: allow, AllowAbsent: true, Settings: new(cfg.Settings()), Limits: &limits, Defer: true}); err != nil {
			out = append(out, "requests of keys."+name+" are refused: "+Cause(err).Error())
		}
	}
	return out
}

// UnknownSearchTools returns the names and patterns in tools.search.always that match no tool of the set. A server, a module, a worker or a
// guest may add one later. Names of tools of configured MCP servers are not reported.
func UnknownSearchTools(cfg *config.Config, set *tool.Set) (out []string) {
	specs := set.Specs()
	for _, pattern := range cfg.Tools.Search.Always {
		if _, _, ofServer := cfg.Tools.MCPTool(pattern); ofServer {
			continue
		}
		if !slices.ContainsFunc(specs, func(s *lathe.ToolSpec) bool { return policy.Match(pattern, s.Name) }) {
			out = append(out, pattern)
		}
	}
	return out
}
