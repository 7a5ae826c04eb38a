package tool

import (
	"sync/atomic"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// A ToolVersioner is a policy that can say that its verdicts on tools do not depend on the run. A [Runner] asks it about each tool of
// the set once for each version, and about each tool in each run otherwise. Calls are judged one by one in either case.
type ToolVersioner interface {
	// ToolVersion returns ok if Tool returns the same verdict on the same definition in every run, for as long as the version is the
	// same. Versions grow: the version changes after the verdicts have changed, and no former one returns. self is the policy that was
	// asked. If self is not the receiver, ok is false: a type that embeds a policy gets this method with it, and may have a Tool of its own.
	ToolVersion(self lathe.Policy) (version uint64, ok bool)
}

// judgedTools are the verdicts on the tools of one state of the set, under one version of the policy. It never changes.
type judgedTools struct {
	registry *registry
	version  uint64
	held     []*event.WithheldTool // by the index in registry.sorted; nil: the tool is offered
}

// judgedLast is the last of them; it has one entry for each tool of the set.
type judgedLast = atomic.Pointer[judgedTools]

// verdicts returns for each tool of v.registry.sorted why it is withheld, without regard to depth; ok is false if the policy may decide
// otherwise in another run.
func (v *view) verdicts() (held []*event.WithheldTool, ok bool) {
	p, is := v.r.opts.Policy.(ToolVersioner)
	if !is {
		return nil, false
	}
	// The version is read before the verdicts: if the policy changes in between, they are kept under the former version only.
	version, ok := toolVersion(p, v.r.opts.Policy)
	if !ok {
		return nil, false
	}
	if last := v.r.judged.Load(); last != nil && last.registry == v.registry && last.version == version {
		return last.held, true
	}
	held = make([]*event.WithheldTool, len(v.registry.sorted))
	for i, e := range v.registry.sorted {
		if e.spec.Hidden { // it is not offered, whatever the policy says
			continue
		}
		if h := v.judge(e); h.Reason != "" {
			held[i] = &h
		}
	}
	v.r.judged.Store(&judgedTools{v.registry, version, held})
	return held, true
}

// toolVersion asks p for its version. If p panics, ok is false.
func toolVersion(p ToolVersioner, self lathe.Policy) (version uint64, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return p.ToolVersion(self)
}
