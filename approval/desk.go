package approval

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// DeskOptions set up a [Desk].
type DeskOptions struct {
	Now     func() time.Time // time.Now
	MaxHeld int              // requests that are kept until they expire; 10 000. Beyond it nothing is approved.
	Grants  *Grants          // a new one; share it to share what was allowed
	// Facts keeps the answers and what their scopes allow, so that they outlive this process and are known to
	// every other that uses it, for as long as their runs are kept; nil: they are kept in memory alone. A scope of
	// a session reaches other runs where it is a [lathe.RunIndex], too, and they are among the newest 100.
	Facts lathe.FactStore
	// OnAsk and OnAnswer are told of each new request and of each first answer, on the goroutine of
	// Approve and of Answer.
	OnAsk    func(Request)
	OnAnswer func(Request, Answer)
}

// A Desk is a [lathe.Approver] at which requests wait, in memory, until they are answered or expire.
// A request that has no answer yet parks its run: Approve returns [lathe.ErrPending] at once. Once
// it is answered the run is executed again and takes the answer, once. With a store of facts the answers are
// there, whichever process took them; the log of the run says which were taken. Its methods may be
// called from several goroutines at once.
type Desk struct {
	opts DeskOptions
	mu   sync.Mutex
	held map[string]*entry // by digest
	late []Request         // that have expired before their run took an answer
}

var _ lathe.Recaller = (*Desk)(nil)

type entry struct {
	req    Request
	asked  lathe.ApprovalRequest
	answer *Answer
	print  string // of the answer
	used   bool
}

// A Request is a call that waits for a person. It holds what the model wrote, and is for whoever
// may approve the call.
type Request struct {
	Digest     string          `json:"digest"`
	RunID      string          `json:"run_id"`
	SessionID  string          `json:"session_id,omitempty"`
	Principal  string          `json:"principal,omitempty"`
	ToolCallID string          `json:"tool_call_id"`
	Tool       string          `json:"tool"`
	Origin     string          `json:"origin,omitempty"`
	Effect     string          `json:"effect"`
	Turn       int             `json:"turn"`
	Seq        int             `json:"seq"`
	Rule       string          `json:"rule,omitempty"`
	Reason     string          `json:"reason,omitempty"`
	ExpiresAt  time.Time       `json:"expires_at"`
	Facts      []Fact          `json:"facts"`
	Arguments  json.RawMessage `json:"arguments"`
}

// A Verb is what a person does with a request.
type Verb string

// The verbs.
const (
	Approve  Verb = "approve"
	Edit     Verb = "edit" // approve with other arguments, which are validated again
	Deny     Verb = "deny"
	AnswerIt Verb = "answer" // in place of the tool, which is not called
)

// Past returns the word of ApprovalResolved for the verb; "" for an unknown one.
func (v Verb) Past() string {
	return map[Verb]string{Approve: "approved", Edit: "edited", Deny: "denied", AnswerIt: "answered"}[v]
}

// An Answer is what a person says to a request.
type Answer struct {
	Verb       Verb            `json:"verb"`
	By         string          `json:"by"`
	ReasonCode string          `json:"reason_code,omitempty"` // a word of a-z, 0-9 and _; default: by the verb
	Scope      Scope           `json:"scope,omitempty"`       // with approve
	Arguments  json.RawMessage `json:"arguments,omitempty"`   // with edit: an object
	Result     json.RawMessage `json:"result,omitempty"`      // with answer: JSON; [Text] makes it of text
}

// Limits of an answer.
const (
	maxBy     = 200
	maxReason = 64
	maxBody   = 1 << 20
)

// NewDesk returns an empty desk.
func NewDesk(opts *DeskOptions) *Desk {
	d := &Desk{held: map[string]*entry{}}
	if opts != nil {
		d.opts = *opts
	}
	if d.opts.Now == nil {
		d.opts.Now = time.Now
	}
	if d.opts.MaxHeld <= 0 {
		d.opts.MaxHeld = 10_000
	}
	if d.opts.Grants == nil {
		d.opts.Grants = &Grants{}
	}
	return d
}

// Approve answers a request from what people have said, or keeps it and returns [lathe.ErrPending].
// An answer is good once: who asks again with the same digest is denied.
func (d *Desk) Approve(ctx context.Context, req *lathe.ApprovalRequest) (lathe.Approval, error) {
	if by, ok := d.opts.Grants.Allows(req); ok {
		return lathe.Approval{Approved: true, By: by, ReasonCode: ReasonGranted}, nil
	}
	if a, ok := d.kept(ctx, req); ok {
		return a, nil
	}
	d.mu.Lock()
	d.sweep()
	e := d.held[req.Digest]
	switch {
	case e == nil:
		if len(d.held) >= d.opts.MaxHeld {
			d.mu.Unlock()
			return lathe.Approval{}, errors.New("approval: too many requests are held")
		}
		e = newEntry(req, d.opts.Now())
		d.held[req.Digest] = e
		d.mu.Unlock()
		if d.opts.OnAsk != nil {
			d.opts.OnAsk(e.req)
		}
		return lathe.Approval{}, lathe.ErrPending
	case e.answer == nil:
		if e.asked.Tool == nil { // as the log had it: now the call itself is known
			*e = *newEntry(req, d.opts.Now())
		}
		d.mu.Unlock()
		return lathe.Approval{}, lathe.ErrPending
	case e.used:
		d.mu.Unlock()
		return lathe.Approval{By: e.answer.By, ReasonCode: ReasonReplayed}, nil
	}
	e.used = true
	a := *e.answer
	kept := d.opts.Facts
	d.mu.Unlock()
	if kept == nil {
		d.grant(req, &a)
	}
	return a.approval(), nil
}

func (d *Desk) grant(req *lathe.ApprovalRequest, a *Answer) {
	if a.Verb == Approve && a.Scope != ScopeOnce {
		// Where it cannot be granted the approval is good for this one call.
		_ = d.opts.Grants.Add(req, a.Scope, a.By)
	}
}

func (a *Answer) approval() lathe.Approval {
	out := lathe.Approval{Approved: a.Verb != Deny, By: a.By, ReasonCode: a.ReasonCode}
	switch a.Verb {
	case Edit:
		out.Arguments = bytes.Clone(a.Arguments)
	case AnswerIt:
		out.Result = bytes.Clone(a.Result)
	case Approve, Deny:
	}
	return out
}

func newEntry(req *lathe.ApprovalRequest, now time.Time) *entry {
	e := &entry{asked: *req}
	e.asked.Args = bytes.Clone(req.Args)
	e.asked.Used = nil
	r := Request{Digest: req.Digest, Tool: req.Tool.Name, Origin: req.Tool.Origin, Effect: req.Tool.Effect.String(), Turn: req.Turn, Seq: req.Seq,
		Rule: req.Verdict.Rule, Reason: req.Verdict.Reason, ExpiresAt: req.ExpiresAt, Facts: Facts(req, now), Arguments: e.asked.Args}
	if req.Run != nil {
		r.RunID, r.SessionID, r.Principal = req.Run.RunID, req.Run.SessionID, req.Run.Principal
	}
	if req.Call != nil {
		r.ToolCallID = req.Call.ID
	}
	e.req = r
	return e
}

// Pending returns the requests that wait for an answer, of one run or of all where run is empty, in
// the order in which they expire.
func (d *Desk) Pending(run string) []Request {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sweep()
	var out []Request
	for _, e := range d.held {
		if e.answer == nil && (run == "" || e.req.RunID == run) {
			out = append(out, e.req)
		}
	}
	slices.SortFunc(out, func(a, b Request) int {
		if c := a.ExpiresAt.Compare(b.ExpiresAt); c != 0 {
			return c
		}
		return strings.Compare(fmt.Sprintf("%s %09d %s", a.RunID, a.Seq, a.Digest), fmt.Sprintf("%s %09d %s", b.RunID, b.Seq, b.Digest))
	})
	return out
}

// Answer answers the request of that digest. The same answer may be given again; another one is
// refused. With a store of facts it is there when Answer returns. The error is a *[lathe.Error]: not_found for a request that was never made or is gone,
// approval_expired, conflict, or invalid_request.
func (d *Desk) Answer(ctx context.Context, digest string, a Answer) error {
	if a.ReasonCode == "" {
		a.ReasonCode = map[Verb]string{Approve: "approved_by_user", Edit: "edited_by_user", Deny: "denied_by_user", AnswerIt: "answered_by_user"}[a.Verb]
	}
	if err := a.check(); err != nil {
		return &lathe.Error{Code: lathe.CodeInvalidRequest, Op: "approval: answer", Err: err}
	}
	a.Arguments, a.Result = bytes.Clone(a.Arguments), bytes.Clone(a.Result)
	d.mu.Lock()
	e := d.held[digest]
	fail := func(code lathe.Code, err error) error {
		d.mu.Unlock()
		return &lathe.Error{Code: code, Op: "approval: answer", Err: err}
	}
	switch {
	case e == nil:
		return fail(lathe.CodeNotFound, lathe.ErrNotFound)
	case e.answer != nil && e.print == fingerprint(&a):
		d.mu.Unlock()
		return nil
	case e.answer != nil:
		return fail(lathe.CodeConflict, errors.New("the request has another answer"))
	case !d.opts.Now().Before(e.req.ExpiresAt):
		return fail(lathe.CodeApprovalExpired, errors.New("the request has expired"))
	}
	// What an earlier process asked is known here once the run asks again; whether it has the scope shows then.
	if ok := a.scoped(e); a.Scope != ScopeOnce && !ok {
		return fail(lathe.CodeInvalidRequest, errors.New("the call has no such scope"))
	}
	req := e.req
	if kept := d.opts.Facts; kept != nil {
		d.mu.Unlock()
		if err := d.store(ctx, kept, &req, &a); err != nil {
			return err
		}
		d.mu.Lock()
	}
	e.answer, e.print = &a, fingerprint(&a)
	d.mu.Unlock()
	if d.opts.OnAnswer != nil {
		d.opts.OnAnswer(req, a)
	}
	return nil
}

// scoped reports whether the call can have the scope of the answer.
func (a *Answer) scoped(e *entry) bool {
	if e.asked.Tool == nil {
		return a.Scope == ScopeCall || a.Scope == ScopeRun || a.Scope == ScopeSession && e.req.SessionID != ""
	}
	_, ok := grantOf(&e.asked, a.Scope)
	return ok
}

// Await has the desk hold a request that was made in a process that is gone, as the log of its run
// has it, so that it can be answered before the run asks again. It reports whether the request waits
// for an answer; an answered one is left as it is. Beyond MaxHeld it holds nothing and reports false.
func (d *Desk) Await(r Request) (waits bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sweep()
	e := d.held[r.Digest]
	if e == nil && len(d.held) < d.opts.MaxHeld {
		e = &entry{req: r}
		d.held[r.Digest] = e
	}
	return e != nil && e.answer == nil
}

// check says what is wrong with an answer.
func (a *Answer) check() error {
	object := func(raw json.RawMessage) bool {
		return len(raw) <= maxBody && rawjson.Check(raw, rawjson.Limits{}) == nil && raw[rawjson.SkipSpace(raw, 0)] == '{'
	}
	switch a.Verb {
	case Approve, Deny:
		if a.Arguments != nil || a.Result != nil {
			return fmt.Errorf("%s takes neither arguments nor a result", a.Verb)
		}
	case Edit:
		if a.Result != nil || !object(a.Arguments) {
			return errors.New("edit takes arguments, a JSON object")
		}
	case AnswerIt:
		if a.Arguments != nil || len(a.Result) > maxBody || rawjson.Check(a.Result, rawjson.Limits{}) != nil {
			return errors.New("answer takes a result, a JSON value")
		}
	default:
		return errors.New("a verb is approve, edit, deny or answer")
	}
	switch {
	case a.Scope != ScopeOnce && a.Verb != Approve:
		return errors.New("only approve has a scope")
	case len(a.By) > maxBy:
		return errors.New("the name of who answers is too long")
	case len(a.ReasonCode) > maxReason || strings.Trim(a.ReasonCode, "abcdefghijklmnopqrstuvwxyz0123456789_") != "":
		return errors.New("a reason code is one word of a-z, 0-9 and _")
	}
	return nil
}

// Withdraw drops the requests of a run that has ended, and what was granted within it.
func (d *Desk) Withdraw(run string) {
	d.mu.Lock()
	for digest, e := range d.held {
		if e.req.RunID == run {
			delete(d.held, digest)
		}
	}
	d.late = slices.DeleteFunc(d.late, func(r Request) bool { return r.RunID == run })
	d.mu.Unlock()
	d.opts.Grants.EndRun(run)
}

// Expired returns the requests that have expired since it was last asked, MaxHeld at most, but for those
// whose run has taken an answer. The others wait until somebody goes on with them.
func (d *Desk) Expired() []Request {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sweep()
	late := d.late
	d.late = nil
	return late
}

// sweep drops what has expired.
func (d *Desk) sweep() {
	now := d.opts.Now()
	for digest, e := range d.held {
		if now.Before(e.req.ExpiresAt) {
			continue
		}
		if delete(d.held, digest); !e.used && len(d.late) < d.opts.MaxHeld {
			d.late = append(d.late, e.req)
		}
	}
}
