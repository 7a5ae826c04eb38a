package app

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/tool"
)

// InTemporal is the advice to use lathe-temporal, with the command that installs it.
const InTemporal = "lathe-temporal serve executes runs in Temporal, with the same configuration: go install github.com/lathe-run/lathe/engine/temporal/cmd/lathe-temporal@latest"

// errNotInTemporal is the error of a program that cannot execute the tools of tools.temporal.
var errNotInTemporal = errors.New("this program does not execute activities; " + InTemporal)

// CheckTemporalTools returns an error if the configuration has tools in tools.temporal. It is for programs without Temporal, which can list
// and check such tools but not call them.
func CheckTemporalTools(cfg *config.Config) error {
	if len(cfg.Tools.Temporal) == 0 {
		return nil
	}
	return configError(config.Problems{{Key: "tools.temporal." + slices.Sorted(maps.Keys(cfg.Tools.Temporal))[0], Message: errNotInTemporal.Error()}})
}

// newTemporalTool is the type of [Options.TemporalTool].
type newTemporalTool func(*lathe.ToolSpec, *config.TemporalTool) (lathe.Tool, error)

// temporalTools returns the tools of tools.temporal, and the problems of entries. If create is nil, calls of the tools fail.
func temporalTools(cfg *config.Config, create newTemporalTool) (tools []lathe.Tool, problems []config.Problem) {
	if create == nil {
		create = func(spec *lathe.ToolSpec, _ *config.TemporalTool) (lathe.Tool, error) { return listedTool{spec}, nil }
	}
	for name, c := range text.ByName(cfg.Tools.Temporal) {
		t, err := create(&lathe.ToolSpec{Name: name, Description: c.Description, Schema: c.Schema, Effect: c.Effect, Allowlist: c.Allowlist,
			Timeout: c.Timeout, Origin: "temporal:" + c.Queue}, c)
		if err == nil {
			_, err = tool.NewSetWithin(cfg.Limits(), t)
		}
		if err != nil {
			problems = append(problems, problem("tools.temporal."+name, "%s", Cause(err)))
			continue
		}
		tools = append(tools, t)
	}
	return tools, problems
}

// A listedTool has the definition of a tool that this program cannot call.
type listedTool struct{ spec *lathe.ToolSpec }

// Spec implements [lathe.Tool].
func (t listedTool) Spec() *lathe.ToolSpec { return t.spec }

// Call implements [lathe.Tool].
func (t listedTool) Call(context.Context, json.RawMessage) (*lathe.Output, error) {
	return nil, lathe.CodeUnavailable.Wrap(Op, errNotInTemporal)
}
