package loop

import (
	"fmt"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/setting"
)

// checkSettings refuses values that are not of the contract. Empty values are the defaults.
func checkSettings(s *lathe.Settings) error {
	if err := setting.Check(s); err != nil {
		return err
	}
	choices := []string{lathe.ChoiceAuto, lathe.ChoiceNone, lathe.ChoiceRequired, lathe.ChoiceFunction}
	switch c := s.ToolChoice; {
	case c.Mode != "" && !slices.Contains(choices, c.Mode):
		return fmt.Errorf("tool_choice: %q is none of %q", c.Mode, choices)
	case (c.Mode == lathe.ChoiceFunction) != (c.Name != ""):
		return fmt.Errorf("tool_choice: a name goes with mode %q and with no other", lathe.ChoiceFunction)
	}
	return nil
}

// withDefaults writes out the defaults, and what the model cannot do.
func withDefaults(s lathe.Settings, info *lathe.ModelInfo) lathe.Settings {
	setting.Fill(&s)
	if info.NoTools {
		s.ToolUseMode = lathe.ModeDisabled
	}
	if info.NoParallel {
		s.ParallelToolCalls = new(bool)
	}
	return s
}

// choice returns the tool choice of a turn. A choice that forces a call is for the first turn
// only, else the run could not end; what follows is left to the server's default.
func (c *modelCall) choice() lathe.ToolChoice {
	r := c.run
	choice := r.settings.ToolChoice
	forced := choice.Mode == lathe.ChoiceRequired || choice.Mode == lathe.ChoiceFunction
	if forced && (r.turn > 1 || r.in.Continues != "") && !r.settings.ToolChoiceEveryTurn {
		return lathe.ToolChoice{}
	}
	return choice
}
