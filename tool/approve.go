package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/digest"
)

// The decisions of ApprovalResolved.
const (
	approved = "approved"
	edited   = "edited"
	refused  = "denied"
	expired  = "expired"
	answered = "answered" // by a person, in place of the tool
)

// Reason codes of approvals that nobody decided.
const (
	reasonChanged   = "changed" // since it was asked for: the tool, its schema, the policy or a limit
	reasonCancelled = "cancelled"
)

// unapproved is stage 7, for what the policy asks about. An approval is bound to the digest of run,
// call, tool, schema and arguments; it is good for this call, once, and until it expires. The call
// is parked when the answer is still to come, or when a call before it waits.
func (w *Work) unapproved(ctx context.Context, c *call) (ended bool) {
	if c.verdict.Decision != lathe.Ask {
		if c.asked() {
			w.resolve(c, approved, lathe.Approval{By: "policy", ReasonCode: reasonChanged}, "")
		}
		if c.hold {
			c.parked = &Parked{Seq: c.seq}
		}
		return c.hold
	}
	if c.hold && c.asked() {
		c.parked = c.Parked // its answer is good once, and not looked at before it can be used
		return true
	}
	req := &lathe.ApprovalRequest{CallInfo: *c.info(), Verdict: c.verdict,
		Digest:    digest.ArgsDigest(w.info.RunID, c.ID, c.tool, c.entry.spec.Schema, c.args),
		ExpiresAt: w.r.now().Add(w.limits.ApprovalTTL)}
	if c.asked() {
		req.ExpiresAt = c.Parked.ExpiresAt
		if c.Parked.Digest != req.Digest {
			// The definition of the tool has changed: what was approved is not what would run.
			return w.resolve(c, expired, lathe.Approval{ReasonCode: reasonChanged}, lathe.CodeApprovalExpired)
		}
	} else {
		c.emit(&lathe.ApprovalRequested{ToolCallID: c.ID, Tool: c.tool, Seq: c.seq, ArgsDigest: req.Digest,
			Rule: c.verdict.Rule, ExpiresAt: req.ExpiresAt, Arguments: bytes.Clone(c.args)})
	}
	var answer lathe.Approval
	err := error(context.DeadlineExceeded)
	if left := req.ExpiresAt.Sub(w.r.now()); left > 0 {
		answer, err = w.ask(ctx, req, left)
	}
	switch {
	case errors.Is(err, lathe.ErrPending):
		c.parked = &Parked{Seq: c.seq, Digest: req.Digest, ExpiresAt: req.ExpiresAt}
		return true
	case ctx.Err() != nil:
		return w.resolve(c, refused, lathe.Approval{ReasonCode: reasonCancelled}, lathe.CodeCancelled)
	case errors.Is(err, context.DeadlineExceeded), !w.r.now().Before(req.ExpiresAt):
		var inTime bool
		if answer, inTime = w.late(ctx, req); !inTime {
			return w.resolve(c, expired, lathe.Approval{}, lathe.CodeApprovalExpired)
		}
		err = nil
	}
	switch {
	case err != nil:
		return w.resolve(c, refused, lathe.Approval{ReasonCode: "approver_error"}, lathe.CodeApprovalDenied)
	case !answer.Approved:
		return w.resolve(c, refused, answer, lathe.CodeApprovalDenied)
	case answer.Result != nil:
		return w.takeResult(c, answer)
	case answer.Arguments != nil:
		return w.takeEdited(c, answer)
	}
	w.resolve(c, approved, answer, "")
	return w.holdApproved(c)
}

// asked reports whether an approval was asked for when the call was parked, and not resolved since.
func (c *call) asked() bool { return c.Parked != nil && c.Parked.Digest != "" && !c.resolved }

// withdraw resolves the approval of a call that has ended before its answer was looked at.
func (w *Work) withdraw(c *call) {
	if !c.asked() {
		return
	}
	reason := reasonChanged
	if c.Refuse != "" {
		reason = reasonCancelled
	}
	w.resolve(c, refused, lathe.Approval{ReasonCode: reason}, "")
}

// ask asks the approver, until the approval would expire. One that panics does not approve.
func (w *Work) ask(ctx context.Context, req *lathe.ApprovalRequest, left time.Duration) (a lathe.Approval, err error) {
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	defer func() {
		if recover() != nil {
			a, err = lathe.Approval{}, errors.New("the approver panicked")
		}
	}()
	return w.r.opts.Approver.Approve(ctx, req)
}

// late returns an answer that was given in time, where the approver knows of one. One that panics does not.
func (w *Work) late(ctx context.Context, req *lathe.ApprovalRequest) (a lathe.Approval, inTime bool) {
	r, ok := w.r.opts.Approver.(lathe.Recaller)
	if !ok {
		return lathe.Approval{}, false
	}
	defer func() {
		if recover() != nil {
			a, inTime = lathe.Approval{}, false
		}
	}()
	return r.Recall(ctx, req)
}

// takeEdited puts the person's arguments in place of the model's. They pass the same checks, and
// the policy is asked again: who may approve a call may not thereby make a denied one.
func (w *Work) takeEdited(c *call, answer lathe.Approval) (ended bool) {
	w.resolve(c, edited, answer, "")
	if w.oversizeArgs(c, len(answer.Arguments)) || w.parse(c, bytes.Clone(answer.Arguments)) || w.invalid(c) || w.ungranted(c) || w.denied(c) {
		return true
	}
	return w.holdApproved(c)
}

// takeResult takes the person's answer in place of the tool's.
func (w *Work) takeResult(c *call, answer lathe.Approval) (ended bool) {
	w.resolve(c, answered, answer, "")
	if w.holdApproved(c) {
		return true
	}
	c.answered, c.out = true, &lathe.Output{Data: bytes.Clone(answer.Result)}
	return false
}

// holdApproved parks a call that was approved at once while a call before it waits. It will be
// asked for again: an approval is not kept.
func (w *Work) holdApproved(c *call) (ended bool) {
	if c.hold {
		c.parked = &Parked{Seq: c.seq}
	}
	return c.hold
}

// resolve tells the decision, and ends the call where there is a code.
func (w *Work) resolve(c *call, decision string, a lathe.Approval, code lathe.Code) (ended bool) {
	e := &lathe.ApprovalResolved{ToolCallID: c.ID, Tool: c.tool, Seq: c.seq, Decision: decision,
		By: clip(a.By, maxDetailBytes), ReasonCode: clip(a.ReasonCode, 64)}
	if decision == edited {
		e.Arguments = json.RawMessage(bytes.Clone(a.Arguments))
	}
	c.emit(e)
	c.resolved = true
	if code == "" {
		return false
	}
	if code == lathe.CodeApprovalExpired {
		c.limitKey = "approval_ttl"
	}
	if e.ReasonCode != "" {
		c.detailString("reason", e.ReasonCode)
	}
	return c.end(code)
}
