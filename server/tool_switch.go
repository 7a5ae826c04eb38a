package server

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/lathe-run/lathe"
	problems "github.com/lathe-run/lathe/internal/gateway/problem"
)

// ToolSwitches disables tools while the server runs. A disabled tool is not offered to models and its calls are denied, including those in
// runs in progress; for this, the policies of the runners must call Disabled. The methods may be called from several goroutines at once.
type ToolSwitches interface {
	// Disabled returns who has disabled the tool, when and why; nil: the tool is enabled.
	Disabled(tool string) *DisabledTool
	// Switch disables a tool, or enables it if off is nil. by is the name of the key that requests this. When Switch returns nil, the
	// change must be stored and in effect in this process.
	Switch(ctx context.Context, tool string, off *DisabledTool, by string) error
}

// A DisabledTool says who has disabled a tool, when and why.
type DisabledTool struct {
	At     time.Time `json:"at"`
	By     string    `json:"by,omitempty"`     // name of the key that has disabled the tool; only admin keys see it
	Reason string    `json:"reason,omitempty"` // reason that was given; at most 200 bytes
}

// maxDisableReason is the maximum length in bytes of the reason for which a tool is disabled.
const maxDisableReason = 200

// disabled returns the part of a DisabledTool that the caller may see; nil if the tool is not disabled.
func (co *core) disabled(c *caller, tool string) *DisabledTool {
	if co.opts.Switches == nil {
		return nil
	}
	d := co.opts.Switches.Disabled(tool)
	if d == nil {
		return nil
	}
	own := *d
	if !c.key.isAdmin() {
		own.By = ""
	}
	return &own
}

// anyTool returns a problem if the server has no tool of that name. Unlike [access.tool] it also finds tools that are
// hidden or that the key may not use: an admin key disables tools for all keys.
func (c *access) anyTool(name string) *problem {
	names := namesOf(c.setup.tools())
	if slices.Contains(names, name) {
		return nil
	}
	return notFound("unknown_tool", "There is no such tool.%s", mean(name, names))
}

// A switchAction is what a request does to a tool.
type switchAction int

const (
	disableTool switchAction = iota
	enableTool
)

// switchTool returns the handler that disables or enables a tool.
func (h *catalogHandler) switchTool(action switchAction) handler {
	return func(w http.ResponseWriter, r *http.Request, c *caller) *problem {
		var given struct {
			Reason string `json:"reason"`
		}
		name := r.PathValue("name")
		var p *problem
		switch {
		case h.opts.Switches == nil:
			p = notFound("not_found", "This gateway cannot disable tools.")
		case action == disableTool || h.opts.Switches.Disabled(name) == nil: // a disabled tool that no longer exists can be enabled
			p = c.anyTool(name)
		}
		if p == nil && action == disableTool && len(c.body) > 0 {
			p = readObject(c.body, &given, `{"reason":"…"}`)
		}
		if p == nil && len(given.Reason) > maxDisableReason {
			p = badRequest("reason", "reason has at most %d bytes.", maxDisableReason)
		}
		if p != nil {
			return p
		}
		var off *DisabledTool
		if action == disableTool {
			off = &DisabledTool{At: h.opts.Now().UTC().Truncate(time.Millisecond), By: c.decider(), Reason: given.Reason}
		}
		if err := h.opts.Switches.Switch(r.Context(), name, off, c.decider()); err != nil {
			if lathe.CodeOf(err) == lathe.CodeConflict {
				return conflict("too_many_disabled", "The tool was not disabled: %s.", problems.Cause(err))
			}
			return h.storeFailed(c, err)
		}
		h.opts.Log.Info("a tool is switched", "tool", name, "disabled", off != nil, "by", c.decider())
		return answer(w, struct {
			Name     string        `json:"name"`
			Disabled *DisabledTool `json:"disabled"` // null: the tool is enabled
		}{name, h.disabled(c, name)})
	}
}
