package loop

import (
	"fmt"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/setting"
)

// checkSettings returns an error for values that are not documented. Empty values are allowed: they stand for the defaults.
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

// withDefaults replaces empty settings by their defaults, and disables what the model does not support.
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

// choice returns the tool choice of a turn. Unless tool_choice_every_turn is set, a choice that forces a call applies to the first turn
// only, because otherwise the run could not end; later turns have no choice.
func (c *modelCall) choice() lathe.ToolChoice {
	r := c.run
	choice := r.settings.ToolChoice
	forced := choice.Mode == lathe.ChoiceRequired || choice.Mode == lathe.ChoiceFunction
	if forced && (r.turn > 1 || r.in.extra.Continues != "") && !r.settings.ToolChoiceEveryTurn {
		return lathe.ToolChoice{}
	}
	return choice
}
