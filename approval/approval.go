// Package approval connects a policy's Ask verdict with the approver who answers it. [Details] describe a call to
// an approver, [Grants] are approvals that apply beyond one call, and a [Queue] stores
// pending requests, so that no goroutine has to block until an approver answers.
//
// Nothing is approved by default: an answer to an unknown, expired or already answered request is refused.
package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"sync"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// A Scope says to which further calls an approval applies, besides the requested one.
type Scope string

// The scopes. They end with their run or session, and do not outlive a change of the tool's schema.
// A grant applies to the policy rule that required the approval. For example, if an approver allowed a tool
// before the run has read untrusted content, the taint guard requires another approval afterwards.
const (
	ScopeOnce    Scope = ""        // nothing else
	ScopeCall    Scope = "call"    // the same call, with equal arguments, again in this run
	ScopeRun     Scope = "run"     // every call of the tool in this run
	ScopeSession Scope = "session" // every call of the tool by the same principal in this session
)

// maxGrants bounds the grants that are kept.
const maxGrants = 10_000

// Grants are what people have allowed beyond one call. The zero value allows nothing. Its methods
// may be called from several goroutines at once.
type Grants struct {
	mu      sync.Mutex
	granted map[grant]string // by whom
}

// grant is what a later call must agree with.
type grant struct {
	scope     Scope
	in        string // the run or the session
	principal string
	tool      string
	rule      string // that asked
	schema    [sha256.Size]byte
	args      [sha256.Size]byte // of ScopeCall
}

func grantOf(req *lathe.ApprovalRequest, scope Scope) (g grant, ok bool) {
	run := req.Run
	if run == nil {
		run = &lathe.RunInfo{}
	}
	g = grant{scope: scope, principal: run.Principal, tool: req.Tool.Name, rule: req.Verdict.Rule, schema: sha256.Sum256(req.Tool.Schema)}
	switch scope {
	case ScopeCall:
		canon, err := rawjson.AppendCanonical(nil, req.Args)
		if err != nil {
			return grant{}, false
		}
		g.in, g.args = run.RunID, sha256.Sum256(canon)
	case ScopeRun:
		g.in = run.RunID
	case ScopeSession:
		g.in = run.SessionID
		return g, g.in != ""
	default:
		return grant{}, false
	}
	return g, true
}

// Add adds a grant with that scope. It returns an error for an unknown scope, for the session scope if the
// run has no session, and beyond maxGrants.
func (g *Grants) Add(req *lathe.ApprovalRequest, scope Scope, by string) error {
	key, ok := grantOf(req, scope)
	if !ok {
		return errors.New("approval: the call has no such scope")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.granted) >= maxGrants {
		return errors.New("approval: too many grants are held")
	}
	if g.granted == nil {
		g.granted = map[grant]string{}
	}
	g.granted[key] = by
	return nil
}

// Allows reports whether an earlier grant allows the call; by is the approver who gave the grant.
func (g *Grants) Allows(req *lathe.ApprovalRequest) (by string, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.granted) == 0 {
		return "", false
	}
	for _, scope := range []Scope{ScopeCall, ScopeRun, ScopeSession} {
		if key, has := grantOf(req, scope); has {
			if by, ok = g.granted[key]; ok {
				return by, true
			}
		}
	}
	return "", false
}

// EndRun drops the grants of a run, EndSession those of a session.
func (g *Grants) EndRun(id string) { g.drop(id, ScopeCall, ScopeRun) }

// EndSession drops the grants of a session.
func (g *Grants) EndSession(id string) { g.drop(id, ScopeSession) }

func (g *Grants) drop(in string, scopes ...Scope) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for key := range g.granted {
		for _, s := range scopes {
			if key.scope == s && key.in == in {
				delete(g.granted, key)
			}
		}
	}
}

// ReasonCodes of answers that this package gives.
const (
	ReasonGranted  = "granted"  // by an earlier answer
	reasonReplayed = "replayed" // the approval was used before
)

// Text returns the JSON form of a person's text, for [lathe.Approval].Result.
func Text(s string) json.RawMessage { return rawjson.AppendQuote(nil, s) }

// fingerprint is equal for equal answers only.
func fingerprint(a *Answer) string {
	h := sha256.New()
	for _, part := range []string{string(a.Verb), a.By, a.ReasonCode, string(a.Scope), string(a.Arguments), string(a.Result)} {
		var n [8]byte
		for i := range n {
			n[i] = byte(len(part) >> (8 * i))
		}
		h.Write(n[:])
		h.Write([]byte(part))
	}
	return hex.EncodeToString(h.Sum(nil))
}
