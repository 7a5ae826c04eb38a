package loop

import (
	"fmt"
	"slices"

	"github.com/lathe-run/lathe"
)

// checkSettings refuses values that are not of the contract. Empty values are the defaults.
func checkSettings(s *lathe.Settings) error {
	return firstError(
		oneOf("tool_use_mode", s.ToolUseMode, lathe.ModeRelaxed, lathe.ModeEnforced, lathe.ModeDisabled),
		oneOf("tool_failure_policy", s.FailurePolicy, lathe.FailureFatal, lathe.FailureTolerated),
		oneOf("executor", s.Executor, lathe.ExecutorReal, lathe.ExecutorNoop),
		oneOf("on_parse_error", s.OnParseError, lathe.ParseErrorTell, lathe.ParseErrorRetryWithout),
		oneOf("on_limit", s.OnLimit, lathe.OnLimitFinish, lathe.OnLimitStop),
		oneOf("oversize_output", s.OversizeOutput, lathe.OversizeError, lathe.OversizeTruncate),
		oneOf("repair", s.Repair, lathe.RepairSafe, lathe.RepairOff),
		oneOf("result_format", s.ResultFormat, lathe.ResultPlain, lathe.ResultEnvelope),
		oneOf("tool_choice", s.ToolChoice.Mode, lathe.ChoiceAuto, lathe.ChoiceNone, lathe.ChoiceRequired, lathe.ChoiceFunction),
		checkChoiceName(s.ToolChoice),
		notNegative("max_parallel_tool_calls", int64(s.MaxParallel)),
		notNegative("fallback_retry_count", int64(s.FallbackRetryCount)),
	)
}

func checkLimits(l *lathe.Limits) error {
	if l.MaxCost < 0 || l.MaxCost != l.MaxCost {
		return fmt.Errorf("max_cost: %v is not an amount", l.MaxCost)
	}
	return firstError(
		notNegative("max_iterations", int64(l.MaxIterations)),
		notNegative("max_total_tool_calls", int64(l.MaxToolCalls)),
		notNegative("max_repeated_calls", int64(l.MaxRepeatedCalls)),
		notNegative("max_unknown_tools", int64(l.MaxUnknownTools)),
		notNegative("max_tool_args_bytes", int64(l.MaxToolArgsBytes)),
		notNegative("max_payload_bytes", int64(l.MaxPayloadBytes)),
		notNegative("max_tool_output_bytes", int64(l.MaxOutputBytes)),
		notNegative("max_json_depth", int64(l.MaxJSONDepth)),
		notNegative("max_json_keys", int64(l.MaxJSONKeys)),
		notNegative("max_tools", int64(l.MaxTools)),
		notNegative("max_tools_bytes", int64(l.MaxToolsBytes)),
		notNegative("tool_timeout", int64(l.ToolTimeout)),
		notNegative("approval_ttl", int64(l.ApprovalTTL)),
		notNegative("max_tokens_total", l.MaxTokensTotal),
	)
}

func oneOf[T ~string](name string, v T, allowed ...T) error {
	if v == "" || slices.Contains(allowed, v) {
		return nil
	}
	return fmt.Errorf("%s: %q is none of %q", name, v, slices.Clone(allowed)) // allowed itself stays on the stack
}

func notNegative(name string, v int64) error {
	if v < 0 {
		return fmt.Errorf("%s: %d is negative", name, v)
	}
	return nil
}

func checkChoiceName(c lathe.ToolChoice) error {
	if (c.Mode == lathe.ChoiceFunction) != (c.Name != "") {
		return fmt.Errorf("tool_choice: a name goes with mode %q and with no other", lathe.ChoiceFunction)
	}
	return nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// withDefaults writes out the defaults that the loop looks at, and what the model cannot do.
func withDefaults(s lathe.Settings, info *lathe.ModelInfo) lathe.Settings {
	if s.ToolUseMode == "" {
		s.ToolUseMode = lathe.ModeRelaxed
	}
	if s.FailurePolicy == "" {
		s.FailurePolicy = lathe.FailureFatal
	}
	if s.OnParseError == "" {
		s.OnParseError = lathe.ParseErrorTell
	}
	if s.OnLimit == "" {
		s.OnLimit = lathe.OnLimitFinish
	}
	if s.FixEmptyFinalText == "" {
		s.FixEmptyFinalText = lathe.DefaultFixEmptyFinalText
	}
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
