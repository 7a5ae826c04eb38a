package approval

import (
	"bytes"
	"context"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/digest"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// maxSessionRuns bounds the runs of a session in which an earlier answer is looked for, the newest first.
const maxSessionRuns = 100

// kept returns the answer of somebody to the request itself, or to an earlier one whose scope has it, from
// what the store keeps. What cannot be read allows nothing.
func (d *Desk) kept(ctx context.Context, req *lathe.ApprovalRequest) (lathe.Approval, bool) {
	store := d.facts()
	if store == nil || req.Run == nil || req.Call == nil {
		return lathe.Approval{}, false
	}
	facts, err := store.Facts(ctx, req.Run.RunID)
	if err != nil {
		return lathe.Approval{}, false
	}
	if a, ok := d.recall(req, facts); ok {
		return a, true
	}
	by, ok := allowed(req, req.Run.RunID, facts)
	if !ok {
		by, ok = allowedInSession(ctx, store, req)
	}
	return lathe.Approval{Approved: ok, By: by, ReasonCode: ReasonGranted}, ok
}

// allowedInSession looks at the other runs of the session.
func allowedInSession(ctx context.Context, store lathe.FactStore, req *lathe.ApprovalRequest) (by string, ok bool) {
	index, has := store.(lathe.RunIndex)
	if !has || req.Run.SessionID == "" {
		return "", false
	}
	rows, _, err := index.Runs(ctx, &lathe.RunFilter{SessionID: req.Run.SessionID, Principal: req.Run.Principal, Limit: maxSessionRuns})
	if err != nil {
		return "", false
	}
	for i := range rows {
		r := &rows[i]
		if r.RunID == req.Run.RunID || r.SessionID != req.Run.SessionID || r.Principal != req.Run.Principal {
			continue
		}
		facts, err := store.Facts(ctx, r.RunID)
		if err != nil {
			return "", false
		}
		if by, ok := allowed(req, r.RunID, facts); ok {
			return by, true
		}
	}
	return "", false
}

// allowed returns who has allowed the call with an answer to another call of the run, which is of the same
// principal, and of the same session where it is another run.
func allowed(req *lathe.ApprovalRequest, runID string, facts []lathe.Fact) (by string, ok bool) {
	for i := range facts {
		if f := formOf(&facts[i]); f != nil && f.Verb == Approve && f.reaches(req, runID) && f.boundTo(req, runID, facts[i].Key) {
			return f.By, true
		}
	}
	return "", false
}

// reaches reports whether the call is within the scope.
func (f *factForm) reaches(req *lathe.ApprovalRequest, runID string) bool {
	same := runID == req.Run.RunID
	switch f.Scope {
	case ScopeCall:
		return same && f.Shown != nil && equalJSON([]byte(*f.Shown), req.Args)
	case ScopeRun:
		return same
	case ScopeSession:
		return req.Run.SessionID != ""
	case ScopeOnce:
	}
	return false
}

// boundTo reports whether the answer was given to the same rule, about the same tool with the same definition:
// its digest has the definition as it was.
func (f *factForm) boundTo(req *lathe.ApprovalRequest, runID, callID string) bool {
	return f.Shown != nil && f.Tool == req.Tool.Name && f.Rule == req.Verdict.Rule &&
		f.Digest == digest.ArgsDigest(runID, callID, f.Tool, req.Tool.Schema, []byte(*f.Shown))
}

func equalJSON(a, b []byte) bool {
	a, err := rawjson.AppendCanonical(nil, a)
	if err != nil {
		return false
	}
	b, err = rawjson.AppendCanonical(nil, b)
	return err == nil && bytes.Equal(a, b)
}
