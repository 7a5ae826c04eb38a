package server

import (
	"context"
	"slices"
	"time"

	"github.com/lathe-run/lathe/approval"
	problems "github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/gateway/runlog"
)

// decisionsOf returns the decisions about calls of the run, oldest first: those in its log, then those that are stored as
// signals and that the run has not read yet. If the store fails, it returns only those of the log.
func (rv *runViews) decisionsOf(ctx context.Context, v *runlog.View) []runlog.Decision {
	out := v.Decisions
	if v.State.Finished != nil || !slices.ContainsFunc(v.State.Open, isAsked) {
		return out
	}
	signals, err := rv.signals.Signals(ctx, v.State.Run.RunID)
	if err != nil {
		return out
	}
	out = slices.Clone(out)
	for i := range signals {
		digest, a, ok := approval.DecodeSignal(&signals[i])
		o := v.OpenCall(signals[i].Key)
		if ok && o != nil && o.Asked && o.Digest == digest {
			out = append(out, runlog.Decision{CallID: o.ID, Tool: o.Name, Digest: digest, Decision: a.Verb.Past(),
				By: a.By, ReasonCode: a.ReasonCode, DecidedAt: signals[i].Time, Stored: true})
		}
	}
	return out
}

// alreadyDecided returns the problem for a second decision about a call. It contains the first decision if that is known.
func (rv *runViews) alreadyDecided(ctx context.Context, v *runlog.View, call string) *problem {
	p := conflict("already_decided", "The call has an answer already.")
	addDecision(p, rv.decisionsOf(ctx, v), call)
	return p
}

// addDecision adds the last decision about the call to the problem.
func addDecision(p *problem, all []runlog.Decision, call string) {
	for _, d := range slices.Backward(all) {
		if d.CallID != call {
			continue
		}
		p.Decision = &problems.Decision{Decision: d.Decision, By: d.By, At: d.DecidedAt}
		p.Message += " The call was " + d.Decision
		if d.By != "" {
			p.Message += " by " + d.By
		}
		p.Message += " at " + d.DecidedAt.UTC().Format(time.RFC3339) + "."
		return
	}
}

// contradicts reports whether the problem contains a decision other than the requested one, which is to approve the call if
// approve is true, and else to deny it. An expired request counts as denied.
func contradicts(p *problem, approve bool) bool {
	if p.Decision == nil {
		return false
	}
	denied := p.Decision.Decision == approval.Deny.Past() || p.Decision.Decision == "expired"
	return denied == approve
}
