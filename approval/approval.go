// Package approval connects the Ask verdict of a policy with an approver who answers it. [Details] describe a call to an approver, [Grants]
// are approvals that apply to further calls, and a [Queue] stores requests until they are answered, so that no goroutine blocks.
//
// Nothing is approved by default: an answer to an unknown, expired or already answered request is refused.
package approval

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// A Scope says to which further calls an approval applies.
type Scope string

// The scopes. An approval with a scope applies until the run or session ends, or the schema of the tool changes, and only to calls for which
// the same policy rule requires an approval.
const (
	ScopeOnce    Scope = ""        // no further call
	ScopeCall    Scope = "call"    // calls of the tool with equal arguments in this run
	ScopeRun     Scope = "run"     // every call of the tool in this run
	ScopeSession Scope = "session" // every call of the tool by the same principal in this session
)

// maxGrants is the maximum number of grants in a Grants.
const maxGrants = 10_000

// Grants is a set of approvals that apply to further calls. It is in memory. The zero value is empty and ready to use. Its methods may be
// called from several goroutines at once.
type Grants struct {
	mu      sync.Mutex
	granted map[grant]string // the approver by grant
}

// A grant is the key of an approval: a call is allowed if its own grant for the scope is equal.
type grant struct {
	scope     Scope
	in        string // the id of the run or the session
	principal string
	tool      string
	rule      string // the policy rule that required the approval
	schema    [sha256.Size]byte
	args      [sha256.Size]byte // hash of the canonical arguments, for ScopeCall only
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
			return g, false
		}
		g.in, g.args = run.RunID, sha256.Sum256(canon)
	case ScopeRun:
		g.in = run.RunID
	case ScopeSession:
		g.in = run.SessionID
		return g, g.in != ""
	default:
		return g, false
	}
	return g, true
}

// Add adds the approval of req for all calls of the scope; by is the name of the approver. If the set has an equal approval, Add replaces
// its approver. It returns an error for [ScopeOnce] and unknown scopes, for [ScopeCall] if the arguments are not valid JSON, for
// [ScopeSession] if the run has no session, and if the set contains 10,000 approvals.
func (g *Grants) Add(req *lathe.ApprovalRequest, scope Scope, by string) error {
	key, ok := grantOf(req, scope)
	if !ok {
		return errors.New("approval: the call has no such scope")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, known := g.granted[key]; !known && len(g.granted) >= maxGrants {
		return errors.New("approval: too many grants are held")
	}
	if g.granted == nil {
		g.granted = map[grant]string{}
	}
	g.granted[key] = by
	return nil
}

// Allows reports whether an approval in the set covers the call of req; by is the name of its approver. If several approvals cover it, by
// is that of the narrowest scope.
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

// EndRun removes the approvals for the run with this id. Those for its session remain.
func (g *Grants) EndRun(id string) { g.drop(id, ScopeCall, ScopeRun) }

// EndSession removes the approvals for the session with this id.
func (g *Grants) EndSession(id string) { g.drop(id, ScopeSession) }

func (g *Grants) drop(in string, scopes ...Scope) {
	g.mu.Lock()
	defer g.mu.Unlock()
	maps.DeleteFunc(g.granted, func(key grant, _ string) bool { return key.in == in && slices.Contains(scopes, key.scope) })
}

// Values of [lathe.Approval].ReasonCode in decisions that a [Queue] makes itself, without an answer to the request.
const (
	ReasonGranted  = "granted"  // approved by the scope of an earlier answer
	reasonReplayed = "replayed" // the answer was already returned for another call
)

// Text returns s as a JSON string. It is for the field Result of an [Answer].
func Text(s string) json.RawMessage { return rawjson.AppendQuote(nil, s) }

// fingerprint returns a hash of all fields of an answer except InRequest.
func fingerprint(a *Answer) string {
	h := sha256.New()
	for _, part := range []string{string(a.Verb), a.By, a.ReasonCode, string(a.Scope), string(a.Arguments), string(a.Result)} {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(part))))
		h.Write([]byte(part))
	}
	return hex.EncodeToString(h.Sum(nil))
}
