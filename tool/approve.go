package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/digest"
	"github.com/lathe-run/lathe/internal/text"
)

// The decisions of ApprovalResolved.
const (
	approved = "approved"
	edited   = "edited"
	refused  = "denied"
	expired  = "expired"
	answered = "answered" // the approver gave the result in place of the tool
)

// Reason codes of ApprovalResolved without a decision of an approver.
const (
	reasonChanged   = "changed" // the tool, its schema, the policy or a limit has changed since the request
	reasonCancelled = "cancelled"
)

// approve is stage 7. If the policy requires an approval, it requests one from the approver. An approval is bound to the digest of run,
// call, tool, schema and arguments. It is valid for this call, once, until it expires. If the answer is pending, or an earlier call of the
// turn is parked, approve parks the call.
func approve(ctx context.Context, c *call) ending {
	if c.verdict.Decision != lathe.Ask {
		if c.asked() {
			resolve(c, approved, lathe.Approval{By: "policy", ReasonCode: reasonChanged})
		}
		return parkBehind(c)
	}
	if c.parkBehind && c.asked() {
		c.parked = c.Parked // the answer can be read only once, so it is read when it can be used
		return parked
	}
	req := requestOf(c)
	if !c.asked() {
		c.emit(&event.ApprovalRequested{ToolCallID: c.ID, Tool: c.tool, Seq: c.seq, ArgsDigest: req.Digest,
			Rule: c.verdict.Rule, ExpiresAt: req.ExpiresAt, Arguments: bytes.Clone(c.args)})
	} else if c.Parked.Digest != req.Digest {
		// The definition has changed: the approval is for another tool than the one that would be called.
		return refuseApproval(c, expired, lathe.Approval{ReasonCode: reasonChanged}, lathe.CodeApprovalExpired)
	}
	return obtainAnswer(ctx, c, req)
}

// obtainAnswer waits for the approver's answer and applies it, or parks the call if the answer is pending. Without an answer in time, or if
// the approver fails, the call is refused.
func obtainAnswer(ctx context.Context, c *call, req *lathe.ApprovalRequest) ending {
	r := c.w.r
	answer, err := askApprover(ctx, r, req)
	switch {
	case errors.Is(err, lathe.ErrPending):
		c.parked = &Parked{Seq: c.seq, Digest: req.Digest, ExpiresAt: req.ExpiresAt}
		return parked
	case ctx.Err() != nil:
		return refuseApproval(c, refused, lathe.Approval{ReasonCode: reasonCancelled}, lathe.CodeCancelled)
	case errors.Is(err, context.DeadlineExceeded), !r.now().Before(req.ExpiresAt):
		stored, inTime := storedAnswer(ctx, r.opts.Approver, req)
		if !inTime {
			return refuseApproval(c, expired, lathe.Approval{}, lathe.CodeApprovalExpired)
		}
		return applyAnswer(c, stored)
	case err != nil:
		return refuseApproval(c, refused, lathe.Approval{ReasonCode: "approver_error"}, lathe.CodeApprovalDenied)
	}
	return applyAnswer(c, answer)
}

// requestOf returns the request for the approver. It expires after approval_ttl, or when the request of the parked call does.
func requestOf(c *call) *lathe.ApprovalRequest {
	w := c.w
	req := &lathe.ApprovalRequest{CallInfo: *c.describe(), Verdict: c.verdict,
		Digest:    digest.ArgsDigest(w.info.RunID, c.ID, c.tool, c.entry.spec.Schema, c.args),
		ExpiresAt: w.r.now().Add(w.limits.ApprovalTTL)}
	if c.asked() {
		req.ExpiresAt = c.Parked.ExpiresAt
	}
	return req
}

// applyAnswer applies the approver's answer: a refusal, a result in place of the tool's, edited arguments, or an approval.
func applyAnswer(c *call, answer lathe.Approval) ending {
	switch {
	case !answer.Approved:
		return refuseApproval(c, refused, answer, lathe.CodeApprovalDenied)
	case answer.Result != nil:
		return applyResult(c, answer)
	case answer.Arguments != nil:
		return applyEdited(c, answer)
	}
	resolve(c, approved, answer)
	return parkBehind(c)
}

// asked reports whether an approval was requested when the call was parked, and has not been resolved since.
func (c *call) asked() bool { return c.Parked != nil && c.Parked.Digest != "" && !c.resolved }

// withdrawApproval resolves the requested approval of a call that ended for another reason.
func withdrawApproval(c *call) {
	if !c.asked() {
		return
	}
	reason := reasonChanged
	if c.Refuse != "" {
		reason = reasonCancelled
	}
	resolve(c, refused, lathe.Approval{ReasonCode: reason})
}

// askApprover calls the approver until the request expires. If it has expired, the error is context.DeadlineExceeded. A panic is returned as
// an error.
func askApprover(ctx context.Context, r *Runner, req *lathe.ApprovalRequest) (a lathe.Approval, err error) {
	left := req.ExpiresAt.Sub(r.now())
	if left <= 0 {
		return lathe.Approval{}, context.DeadlineExceeded
	}
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	defer func() {
		if recover() != nil {
			a, err = lathe.Approval{}, errors.New("the approver panicked")
		}
	}()
	return r.opts.Approver.Approve(ctx, req)
}

// storedAnswer returns an answer that was given in time but has not been read, if the approver is a [StoredApprover] and has one. inTime is
// false if not, or if the approver panics.
func storedAnswer(ctx context.Context, approver lathe.Approver, req *lathe.ApprovalRequest) (a lathe.Approval, inTime bool) {
	r, ok := approver.(StoredApprover)
	if !ok {
		return lathe.Approval{}, false
	}
	defer func() {
		if recover() != nil {
			a, inTime = lathe.Approval{}, false
		}
	}()
	return r.StoredApproval(ctx, req)
}

// applyEdited replaces the arguments of the model by those of the approver. They pass through the same stages, policy included: an approver
// cannot make a call that the policy denies.
func applyEdited(c *call, answer lathe.Approval) ending {
	resolve(c, edited, answer)
	if end := boundArguments(c, len(answer.Arguments)); end != proceed {
		return end
	}
	if end := parseArguments(c, bytes.Clone(answer.Arguments)); end != proceed {
		return end
	}
	if end := validate(c); end != proceed {
		return end
	}
	if end := authorize(c); end != proceed {
		return end
	}
	return parkBehind(c)
}

// applyResult uses the approver's result in place of the tool's output.
func applyResult(c *call, answer lathe.Approval) ending {
	resolve(c, answered, answer)
	if end := parkBehind(c); end != proceed {
		return end
	}
	c.source, c.out = fromApprover, &lathe.Output{Data: bytes.Clone(answer.Result)}
	return proceed
}

// parkBehind parks the call if an earlier call of the turn is parked. An approval that was read is not stored: it is requested again later.
func parkBehind(c *call) ending {
	if !c.parkBehind {
		return proceed
	}
	c.parked = &Parked{Seq: c.seq}
	return parked
}

// refuseApproval publishes the decision and ends the call with the code.
func refuseApproval(c *call, decision string, a lathe.Approval, code lathe.Code) ending {
	resolve(c, decision, a)
	if code == lathe.CodeApprovalExpired {
		c.limitKey = "approval_ttl"
	}
	if reason := text.Cut(a.ReasonCode, maxReasonBytes); reason != "" {
		c.detailString("reason", reason)
	}
	return fail(code)
}

// maxReasonBytes is the maximum length of the reason code of a decision.
const maxReasonBytes = 64

// resolve publishes the decision.
func resolve(c *call, decision string, a lathe.Approval) {
	e := &event.ApprovalResolved{ToolCallID: c.ID, Tool: c.tool, Seq: c.seq, Decision: decision,
		By: text.Cut(a.By, maxDetailBytes), ReasonCode: text.Cut(a.ReasonCode, maxReasonBytes), InRequest: a.InRequest}
	if decision == edited {
		e.Arguments = json.RawMessage(bytes.Clone(a.Arguments))
	}
	c.emit(e)
	c.resolved = true
}
