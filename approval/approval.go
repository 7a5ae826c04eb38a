// Package approval holds what stands between an Ask of a policy and the person who answers it: what
// is shown of a call ([Facts]), what a person has allowed beyond one call ([Grants]), and a [Desk]
// where requests wait for their answer while nobody's goroutine does.
//
// Nothing is approved by default: what is unknown, expired, or answered twice is refused.
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

// A Scope says what an approval is good for besides the one call it was asked for.
type Scope string

// The scopes. They end with their run or session, and do not outlive a change of the tool's schema.
// They answer the rule that asked: who allowed a tool before the run had read what strangers wrote
// is asked again by the guard that watches for that.
const (
	ScopeOnce    Scope = ""        // nothing else
	ScopeCall    Scope = "call"    // the same call, with equal arguments, again in this run
	ScopeRun     Scope = "run"     // every call of the tool in this run
	ScopeSession Scope = "session" // every call of the tool by the same principal in this session
)

// MaxGrants bounds the grants that are kept.
const MaxGrants = 10_000

// Grants are what people have allowed beyond one call. The zero value allows nothing. Its methods
// may be called from several goroutines at once.
type Grants struct {
	mu   sync.Mutex
	held map[grant]string // by whom
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

// Add grants what the scope says. It fails for a scope that there is not, for a session where the
// run has none, and beyond [MaxGrants].
func (g *Grants) Add(req *lathe.ApprovalRequest, scope Scope, by string) error {
	key, ok := grantOf(req, scope)
	if !ok {
		return errors.New("approval: the call has no such scope")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.held) >= MaxGrants {
		return errors.New("approval: too many grants are held")
	}
	if g.held == nil {
		g.held = map[grant]string{}
	}
	g.held[key] = by
	return nil
}

// Allows reports whether an earlier grant allows the call, and whose it is.
func (g *Grants) Allows(req *lathe.ApprovalRequest) (by string, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.held) == 0 {
		return "", false
	}
	for _, scope := range []Scope{ScopeCall, ScopeRun, ScopeSession} {
		if key, has := grantOf(req, scope); has {
			if by, ok = g.held[key]; ok {
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
	for key := range g.held {
		for _, s := range scopes {
			if key.scope == s && key.in == in {
				delete(g.held, key)
			}
		}
	}
}

// ReasonCodes of answers that this package gives.
const (
	ReasonGranted  = "granted"  // by an earlier answer
	ReasonReplayed = "replayed" // the approval was used before
)

// Text returns the JSON form of a person's text, for [lathe.Approval].Result.
func Text(s string) json.RawMessage { return rawjson.AppendQuote(nil, s) }

// fingerprint tells answers apart.
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
