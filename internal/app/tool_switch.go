package app

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/audit"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
)

const (
	// disabledPrefix is the prefix of the store keys of disabled tools.
	disabledPrefix = "disabled_tool/"
	// maxDisabled is the largest number of disabled tools.
	maxDisabled = 1_000
	// disabledEvery is the interval at which the processes on a shared store read the disabled tools.
	disabledEvery = time.Second
)

var errTooManyDisabled = errors.New("1000 tools are disabled, which is the limit: remove tools from the configuration, or enable some")

// toolSwitches has the tools that operators have disabled. They are stored if the store is a [store.ValueKeeper].
type toolSwitches struct {
	kept  store.ValueKeeper // nil: disabled tools are those of this process only
	trail *audit.Log        // nil: there is no audit log
	log   *slog.Logger

	mu     sync.Mutex // locked while the disabled tools are read or changed
	now    atomic.Pointer[disabledTools]
	failed bool // the last read has failed
}

// disabledTools are the disabled tools by name. A value never changes: a switch makes a new one.
type disabledTools map[string]server.DisabledTool

func (a *App) openSwitches(ctx context.Context) error {
	a.switches = &toolSwitches{trail: a.audit, log: a.log}
	a.switches.now.Store(&disabledTools{})
	a.switches.kept, _ = a.store.(store.ValueKeeper)
	return a.switches.read(ctx)
}

// read replaces the disabled tools of this process by those in the store.
func (s *toolSwitches) read(ctx context.Context) error {
	if s.kept == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	values, err := s.kept.Values(ctx, disabledPrefix)
	if err != nil {
		return err
	}
	next := make(disabledTools, len(values))
	for name, value := range values {
		var d server.DisabledTool
		_ = json.Unmarshal(value, &d) // a tool with an unreadable value is disabled, too
		next[strings.TrimPrefix(name, disabledPrefix)] = d
	}
	s.now.Store(&next)
	return nil
}

// follow reads changes by other processes on the store, until ctx is done.
func (s *toolSwitches) follow(ctx context.Context) {
	every(ctx, disabledEvery, func() {
		err := s.read(ctx)
		if err != nil && !s.failed && ctx.Err() == nil {
			s.log.Error("the disabled tools could not be read: those of the last read stay disabled", "code", lathe.CodeOf(err))
		}
		s.failed = err != nil
	})
}

// policy returns a policy that denies the disabled tools.
func (s *toolSwitches) policy() *policy.Disabled {
	return &policy.Disabled{Is: func(tool string) bool { return s.Disabled(tool) != nil }}
}

// Disabled implements [server.ToolSwitches].
func (s *toolSwitches) Disabled(tool string) *server.DisabledTool {
	d, off := (*s.now.Load())[tool]
	if !off {
		return nil
	}
	return &d
}

// Switch implements [server.ToolSwitches].
func (s *toolSwitches) Switch(ctx context.Context, tool string, off *server.DisabledTool, by string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := maps.Clone(*s.now.Load())
	change, value := "tool_enabled", []byte(nil)
	delete(next, tool)
	if off != nil {
		if len(next) >= maxDisabled {
			return lathe.CodeConflict.Wrap("app: disable a tool", errTooManyDisabled)
		}
		next[tool], change = *off, "tool_disabled"
		var err error
		if value, err = json.Marshal(off); err != nil {
			return err
		}
	}
	if s.trail != nil {
		if err := s.trail.Change(ctx, &audit.Changed{Change: change, Tool: tool, By: by}); err != nil {
			return err
		}
	}
	if s.kept != nil {
		if err := s.kept.SetValue(ctx, disabledPrefix+tool, value); err != nil {
			return err
		}
	}
	s.now.Store(&next)
	return nil
}
