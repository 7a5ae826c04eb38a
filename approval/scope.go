package approval

import (
	"context"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/digest"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/store"
)

// maxSessionRuns is the maximum number of runs of a session that are searched for an earlier answer, newest first.
const maxSessionRuns = 100

// storedApproval returns the stored answer to the request, or an approval if a stored answer to an earlier request allows the call. ok is false if
// there is neither, or if the store cannot be read: the caller then asks an approver.
func (q *Queue) storedApproval(ctx context.Context, req *lathe.ApprovalRequest) (lathe.Approval, bool) {
	store := q.signals()
	if store == nil || req.Run == nil || req.Call == nil {
		return lathe.Approval{}, false
	}
	found, err := store.Signals(ctx, req.Run.RunID)
	if err != nil {
		return lathe.Approval{}, false
	}
	if a, ok := q.approvalIn(req, found); ok {
		return a, true
	}
	by, ok := allowed(req, req.Run.RunID, found)
	if !ok {
		by, ok = allowedInSession(ctx, store, req)
	}
	return lathe.Approval{Approved: ok, By: by, ReasonCode: ReasonGranted}, ok
}

// allowedInSession returns the approver who allowed the call by an answer in another run of the session. ok is false if none exists, or
// if the store cannot be read.
func allowedInSession(ctx context.Context, signals store.SignalStore, req *lathe.ApprovalRequest) (by string, ok bool) {
	index, has := signals.(store.RunIndex)
	if !has || req.Run.SessionID == "" {
		return "", false
	}
	rows, _, err := index.Runs(ctx, &store.RunFilter{SessionID: req.Run.SessionID, Principal: req.Run.Principal, Limit: maxSessionRuns})
	if err != nil {
		return "", false
	}
	for _, r := range rows {
		if r.RunID == req.Run.RunID || r.SessionID != req.Run.SessionID || r.Principal != req.Run.Principal {
			continue
		}
		found, err := signals.Signals(ctx, r.RunID)
		if err != nil {
			return "", false
		}
		if by, ok := allowed(req, r.RunID, found); ok {
			return by, true
		}
	}
	return "", false
}

// allowed returns the approver who allowed the call by an answer among the signals of a run. The caller checks that this run has the same
// principal and, if it is another run, the same session.
func allowed(req *lathe.ApprovalRequest, runID string, found []store.Signal) (by string, ok bool) {
	for i := range found {
		if f := decodeAnswer(&found[i]); f != nil && f.Verb == Approve && f.scopeCovers(req, runID) && f.boundTo(req, runID, found[i].Key) {
			return f.By, true
		}
	}
	return "", false
}

// scopeCovers reports whether the scope of the answer includes the call.
func (f *storedAnswer) scopeCovers(req *lathe.ApprovalRequest, runID string) bool {
	same := runID == req.Run.RunID
	switch f.Scope {
	case ScopeCall:
		return same && f.Shown != nil && rawjson.Equal([]byte(*f.Shown), req.Args)
	case ScopeRun:
		return same
	case ScopeSession:
		return req.Run.SessionID != ""
	case ScopeOnce:
	}
	return false
}

// boundTo reports whether the answer was given for the same rule and for the same definition of the same tool: the digest of an answer
// covers the schema of the tool at the time of the answer.
func (f *storedAnswer) boundTo(req *lathe.ApprovalRequest, runID, callID string) bool {
	return f.Shown != nil && f.Tool == req.Tool.Name && f.Rule == req.Verdict.Rule &&
		f.Digest == digest.ArgsDigest(runID, callID, f.Tool, req.Tool.Schema, []byte(*f.Shown))
}
