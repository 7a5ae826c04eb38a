package server

import (
	"math"
	"time"

	"github.com/lathe-run/lathe"
)

// A limitRow is a limit under its name in the configuration. One of its pointers is set.
type limitRow struct {
	key    string
	count  *int
	span   *time.Duration
	tokens *int64
	cost   *float64
}

// limitRows are the limits that a key or a request may narrow.
func limitRows(l *lathe.Limits) []limitRow {
	return []limitRow{
		{key: "max_iterations", count: &l.MaxIterations},
		{key: "max_total_tool_calls", count: &l.MaxToolCalls},
		{key: "max_repeated_calls", count: &l.MaxRepeatedCalls},
		{key: "max_unknown_tools", count: &l.MaxUnknownTools},
		{key: "max_tool_args_bytes", count: &l.MaxToolArgsBytes},
		{key: "max_payload_bytes", count: &l.MaxPayloadBytes},
		{key: "max_tool_output_bytes", count: &l.MaxOutputBytes},
		{key: "max_tools", count: &l.MaxTools},
		{key: "max_tools_bytes", count: &l.MaxToolsBytes},
		{key: "tool_timeout", span: &l.ToolTimeout},
		{key: "run_timeout", span: &l.RunTimeout},
		{key: "approval_ttl", span: &l.ApprovalTTL},
		{key: "max_tokens_total", tokens: &l.MaxTokensTotal},
		{key: "max_cost", cost: &l.MaxCost},
	}
}

// read reads a limit: a number above 0, or for times a text such as "30s".
func (r *limitRow) read(v []byte, at string) *problem {
	switch {
	case r.span != nil:
		var s string
		if p := take(v, &s, at, `a time such as "30s"`); p != nil {
			return p
		}
		d, err := time.ParseDuration(s)
		if err != nil || d <= 0 {
			return badRequest(at, `%s must be a time above 0, such as "30s".`, at)
		}
		*r.span = d
		return nil
	case r.cost != nil:
		if p := take(v, r.cost, at, "a number"); p != nil {
			return p
		}
		if *r.cost <= 0 || math.IsInf(*r.cost, 0) {
			return badRequest(at, "%s must be above 0.", at)
		}
		return nil
	}
	var n int64
	if p := take(v, &n, at, "a whole number"); p != nil {
		return p
	}
	if n <= 0 || r.count != nil && n > math.MaxInt32 {
		return badRequest(at, "%s must be above 0.", at)
	}
	if r.count != nil {
		*r.count = int(n)
	} else {
		*r.tokens = n
	}
	return nil
}
