package main

import (
	"slices"

	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/store"
	"github.com/spf13/cobra"
)

// describeOpen adds to open calls the rule that requires the approval, from the log, and the properties of their tools, from the
// configuration. It starts no servers.
func describeOpen(cmd *cobra.Command, s store.Store, runID string, open []openCallView) error {
	if len(open) == 0 {
		return nil
	}
	for e, err := range s.Read(cmd.Context(), runID, 0) {
		if err != nil {
			return storeError(err)
		}
		asked, ok := e.Data.(*event.ApprovalRequested)
		if !ok {
			continue
		}
		if i := slices.IndexFunc(open, func(o openCallView) bool { return o.ID == asked.ToolCallID }); i >= 0 && open[i].Digest != "" {
			open[i].Rule = asked.Rule
		}
	}
	cfg, set, err := configuredTools(cmd)
	if err != nil {
		return nil //nolint:nilerr // the run is shown without a configuration, too
	}
	for i := range open {
		o := &open[i]
		if t, ok := set.Lookup(o.Tool); ok {
			o.Effect, o.Origin = t.Spec().Effect.String(), t.Spec().Origin
			continue
		}
		if server, remote, ok := cfg.Tools.MCPTool(o.Tool); ok {
			o.Effect, o.Origin = cfg.Tools.MCP[server].Effects[remote].String(), "mcp:"+server
		}
	}
	return nil
}
