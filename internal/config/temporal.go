package config

import (
	"encoding/json"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/text"
)

// A TemporalTool configures a tool whose calls are activities on a task queue of Temporal.
type TemporalTool struct {
	// What the tool does, for the model. Required.
	Description string `key:"description" also:"summary"`
	// Task queue of the workers that execute the calls. Required.
	Queue string `key:"queue" is:"word" also:"task_queue"`
	// Type of the activity. Default: the name of the tool.
	Activity string `key:"activity" is:"word" also:"activity_type type"`
	// JSON Schema of the arguments, of the type `object`. Default: no arguments.
	Schema json.RawMessage `key:"schema" unset:"omit" also:"parameters input_schema arguments"` // nil: no arguments
	// What a call does. A call that `writes` has one attempt.
	Effect lathe.Effect `key:"effect" default:"writes" also:"effects"`
	// Fields of the output that the model may see, as dotted paths; `["*"]` for all. Required.
	Allowlist []string `key:"allowlist" also:"allow fields show"`
	// Time until a worker begins an attempt, and time of the attempt. Default: `tool_calling.tool_timeout`.
	Timeout time.Duration `key:"timeout" range:"0s.."` // 0: that of all tools
	// Time without a heartbeat after which a worker is lost; `0s`: the worker sends no heartbeats.
	Heartbeat time.Duration `key:"heartbeat" default:"0s" range:"0s.." also:"heartbeat_timeout"`
	// Attempts of a call of a tool that is `read_only` or `idempotent`.
	MaxAttempts int `key:"max_attempts" default:"3" range:"1..100" also:"attempts retries max_retries"`
}

// checkTemporal reports missing settings of tools on task queues.
func (l *loader) checkTemporal() {
	for name, t := range text.ByName(l.cfg.Tools.Temporal) {
		base := "tools.temporal." + name
		if l.wrong(base) {
			continue // the rest would only follow from it
		}
		if t.Description == "" {
			l.at(base+".description", "no description: what the tool does, for the model")
		}
		if t.Queue == "" {
			l.at(base+".queue", "no task queue: the one whose workers execute the calls")
		}
		if len(t.Allowlist) == 0 {
			l.at(base+".allowlist", `no allowlist: name the fields of the output that the model may see, or ["*"] for all`)
		}
	}
}
