package approval

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/tool"
)

// QueueOptions configure a [Queue]. The zero value is usable.
type QueueOptions struct {
	Now func() time.Time // the clock; nil: time.Now
	// MaxPending is the maximum number of requests in memory; 0 or less: 10,000. Approve returns an error for further requests. An answered
	// request counts until it expires or Withdraw removes it.
	MaxPending int
	// Grants contains approvals that Approve applies to further calls. Several queues may share it; nil: the queue has its own. If Signals
	// is nil, Approve adds to Grants the answers that have a scope.
	Grants *Grants
	// Signals stores the answers and their scopes until their runs are deleted, so that every process with the same store has them; nil:
	// they are in memory only. If it implements [store.RunIndex], a session scope also applies to the other runs of the session, of which
	// the newest 100 are searched.
	Signals store.SignalStore
	// OnAsk, if not nil, is called by Approve with each new request. OnAnswer, if not nil, is called by Answer with the first answer to
	// each request. Both are called before Approve and Answer return, without a lock.
	OnAsk    func(Request)
	OnAnswer func(Request, Answer)
}

// A Queue is an approval queue: a [lathe.Approver] that stores requests in memory until they are answered or expire.
//
// Approve returns [lathe.ErrPending] for a request without an answer, and the run is parked. After a call of Answer, the run is executed
// again and Approve returns the answer, once. For example:
//
//	Approve(request)       → ErrPending, the run is parked
//	Answer(digest, answer) → stored
//	Approve(request)       → the answer, when the run is resumed
//	Approve(request)       → denied: an answer approves one call only
//
// Requests are in memory: after a restart, [Queue.Restore] reads those of parked runs from the store.
//
// With [QueueOptions].Signals, Approve also returns answers that other processes have stored. Its methods may be called from several goroutines
// at once.
type Queue struct {
	opts    QueueOptions
	mu      sync.Mutex
	pending map[string]*entry // by digest
	late    []Request         // requests that expired before their run used an answer
}

var _ tool.StoredApprover = (*Queue)(nil)

// An entry is a request in memory, until it expires or its run ends. The lock of the queue guards it. Its answer comes from Answer, or from
// Signals when the run uses it. The first answer stays: if Signals is nil, the first that gets the lock, else the first that Signals stores.
type entry struct {
	req      Request
	asked    lathe.ApprovalRequest // Tool is nil for a request of Await until the run calls Approve
	answer   *Answer               // nil: not answered
	print    string                // the fingerprint of the answer: answers with equal ones are repetitions
	used     bool                  // Approve has returned the answer
	reported bool                  // Answer has called OnAnswer, or is about to
}

// A Request is a call that waits for an approval. It contains text of the model: show it only to those who may approve the call.
type Request struct {
	Digest     string          `json:"digest"` // identifies the request: [lathe.ApprovalRequest].Digest
	RunID      string          `json:"run_id"`
	SessionID  string          `json:"session_id,omitempty"` // "": the run has no session
	Principal  string          `json:"principal,omitempty"`  // owner of the run
	ToolCallID string          `json:"tool_call_id"`
	Tool       string          `json:"tool"`
	Origin     string          `json:"origin,omitempty"` // of the tool, as [lathe.ToolSpec].Origin
	Effect     string          `json:"effect"`           // of the tool, as [lathe.Effect.String]; "": not known after Restore
	Turn       int             `json:"turn"`             // number of the model call, from 1
	Seq        int             `json:"seq"`              // number of the call within the run, from 0
	Rule       string          `json:"rule,omitempty"`   // the policy rule that requires the approval
	Reason     string          `json:"reason,omitempty"` // of the policy
	ExpiresAt  time.Time       `json:"expires_at"`
	Details    []Detail        `json:"facts"`     // see [Details]; nil after Restore
	Arguments  json.RawMessage `json:"arguments"` // as the approver sees them: [lathe.ApprovalRequest].Args
}

// A Verb is the decision of an approver.
type Verb string

// The decisions of an approver.
const (
	Approve  Verb = "approve" // execute the call
	Edit     Verb = "edit"    // execute the call with other arguments, which are validated again
	Deny     Verb = "deny"    // refuse the call
	AnswerIt Verb = "answer"  // use a given result in place of a call of the tool
)

// Past returns the Decision of the event ApprovalResolved for an answer with this verb, such as "approved"; "" for an unknown verb.
func (v Verb) Past() string {
	return map[Verb]string{Approve: "approved", Edit: "edited", Deny: "denied", AnswerIt: "answered"}[v]
}

// An Answer is the decision on one request. Edit requires Arguments, and AnswerIt requires Result; each has at most 1 MiB and must not be
// set with any other verb.
type Answer struct {
	Verb       Verb            `json:"verb"`
	By         string          `json:"by"`                    // the name of the approver, for the record; at most 200 bytes
	ReasonCode string          `json:"reason_code,omitempty"` // a word of a-z, 0-9 and _, at most 64 bytes; "": a default for the verb, such as "denied_by_user"
	Scope      Scope           `json:"scope,omitempty"`       // only for Approve: further calls that are approved
	Arguments  json.RawMessage `json:"arguments,omitempty"`   // only for Edit: a JSON object
	Result     json.RawMessage `json:"result,omitempty"`      // only for AnswerIt: a JSON value; [Text] converts text
	InRequest  bool            `json:"in_request,omitempty"`  // see [lathe.Approval]
}

// Limits of an answer, in bytes.
const (
	maxBy     = 200
	maxReason = 64
	maxBody   = 1 << 20
)

// check returns an error if the answer is valid for no request.
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
		return errors.New("the name of the approver is too long")
	case len(a.ReasonCode) > maxReason || strings.Trim(a.ReasonCode, "abcdefghijklmnopqrstuvwxyz0123456789_") != "":
		return errors.New("a reason code is one word of a-z, 0-9 and _")
	}
	return nil
}

func (a *Answer) approval() lathe.Approval {
	return lathe.Approval{Approved: a.Verb != Deny, By: a.By, ReasonCode: a.ReasonCode, InRequest: a.InRequest,
		Arguments: bytes.Clone(a.Arguments), Result: bytes.Clone(a.Result)}
}

// NewQueue returns an empty queue. opts may be nil, and is copied.
func NewQueue(opts *QueueOptions) *Queue {
	q := &Queue{pending: map[string]*entry{}}
	if opts != nil {
		q.opts = *opts
	}
	if q.opts.Now == nil {
		q.opts.Now = time.Now
	}
	if q.opts.MaxPending <= 0 {
		q.opts.MaxPending = 10_000
	}
	if q.opts.Grants == nil {
		q.opts.Grants = &Grants{}
	}
	return q
}

// Approve implements [lathe.Approver]. It does not wait for an answer. It returns the answer to the request if there is one, or an approval
// if the scope of an earlier answer covers the call. Otherwise it adds the request, calls OnAsk, and returns [lathe.ErrPending], or another
// error if the queue has MaxPending requests. If the queue already has the request without an answer, Approve returns [lathe.ErrPending]
// and does not call OnAsk. An answer is returned once: for a second request with the same digest Approve returns a denial, unless the
// answer is in Signals. If Signals cannot be read, Approve acts as if it contained no answer.
func (q *Queue) Approve(ctx context.Context, req *lathe.ApprovalRequest) (lathe.Approval, error) {
	if by, ok := q.opts.Grants.Allows(req); ok {
		return lathe.Approval{Approved: true, By: by, ReasonCode: ReasonGranted}, nil
	}
	if a, ok := q.storedApproval(ctx, req); ok {
		return a, nil
	}
	a, added, err := q.use(req)
	if added != nil && q.opts.OnAsk != nil {
		q.opts.OnAsk(*added)
	}
	return a, err
}

// use returns the answer in memory to the request, and marks it as used. Without such an answer, use returns ErrPending and, if the request is
// new, adds it and returns it as added.
func (q *Queue) use(req *lathe.ApprovalRequest) (a lathe.Approval, added *Request, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sweep()
	e := q.pending[req.Digest]
	switch {
	case e == nil && len(q.pending) >= q.opts.MaxPending:
		return a, nil, errors.New("approval: too many requests are held")
	case e == nil:
		e = newEntry(req, q.opts.Now())
		q.pending[req.Digest] = e
		return a, &e.req, lathe.ErrPending
	case e.answer == nil:
		if e.asked.Tool == nil { // Await had only what the log of the run contains; req is the call itself
			*e = *newEntry(req, q.opts.Now())
		}
		return a, nil, lathe.ErrPending
	case e.used:
		return lathe.Approval{By: e.answer.By, ReasonCode: reasonReplayed}, nil, nil
	}
	e.used = true
	answer := e.answer
	if q.opts.Signals == nil && answer.Verb == Approve && answer.Scope != ScopeOnce {
		// If the scope cannot be granted, the approval applies to this call only.
		_ = q.opts.Grants.Add(req, answer.Scope, answer.By)
	}
	return answer.approval(), nil, nil
}

func newEntry(req *lathe.ApprovalRequest, now time.Time) *entry {
	e := &entry{asked: *req}
	e.asked.Args = bytes.Clone(req.Args)
	e.asked.Used = nil
	r := Request{Digest: req.Digest, Tool: req.Tool.Name, Origin: req.Tool.Origin, Effect: req.Tool.Effect.String(), Turn: req.Turn, Seq: req.Seq,
		Rule: req.Verdict.Rule, Reason: req.Verdict.Reason, ExpiresAt: req.ExpiresAt, Details: Details(req, now), Arguments: e.asked.Args}
	if req.Run != nil {
		r.RunID, r.SessionID, r.Principal = req.Run.RunID, req.Run.SessionID, req.Run.Principal
	}
	if req.Call != nil {
		r.ToolCallID = req.Call.ID
	}
	e.req = r
	return e
}

// Pending returns the requests of a run that have no answer, the earliest to expire first. If run is "", it returns those of all runs. It
// does not return expired requests.
func (q *Queue) Pending(run string) []Request {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sweep()
	var out []Request
	for _, e := range q.pending {
		if e.answer == nil && (run == "" || e.req.RunID == run) {
			out = append(out, e.req)
		}
	}
	slices.SortFunc(out, func(a, b Request) int {
		return cmp.Or(a.ExpiresAt.Compare(b.ExpiresAt), strings.Compare(a.RunID, b.RunID), a.Seq-b.Seq, strings.Compare(a.Digest, b.Digest))
	})
	return out
}

// Answer records the answer to the request with this digest, also in Signals, and then calls OnAnswer. It does not resume the run: the
// caller must do that. A repetition of the same answer has no effect and no error.
//
// The error has the code not_found if the queue has no such request, approval_expired if the request has expired, conflict if it has
// another answer or if Signals reports that its run has ended, and invalid_request if the answer is not valid. An error of Signals is
// returned as it is: the answer may have been stored or not, and the caller may repeat it.
func (q *Queue) Answer(ctx context.Context, digest string, a Answer) error {
	a.ReasonCode = cmp.Or(a.ReasonCode, a.Verb.Past()+"_by_user")
	if err := a.check(); err != nil {
		return lathe.CodeInvalidRequest.Wrap(opAnswer, err)
	}
	a.Arguments, a.Result = bytes.Clone(a.Arguments), bytes.Clone(a.Result)
	q.mu.Lock()
	e := q.pending[digest]
	err := q.checkAnswer(e, &a)
	if err != nil || e.answer != nil { // without an error, the request has the same answer already
		q.mu.Unlock()
		return err
	}
	req := e.req
	if signals := q.opts.Signals; signals != nil {
		q.mu.Unlock() // the store may block
		if err := q.store(ctx, signals, &req, &a); err != nil {
			return err
		}
		q.mu.Lock() // an answer that was set meanwhile is equal, since the store has accepted both
	}
	e.answer, e.print = &a, fingerprint(&a)
	isFirst := !e.reported // only one of several equal answers at once calls OnAnswer
	e.reported = true
	q.mu.Unlock()
	if isFirst && q.opts.OnAnswer != nil {
		q.opts.OnAnswer(req, a)
	}
	return nil
}

const opAnswer = "approval: answer"

// checkAnswer returns an error if the request e, which may be nil, cannot get the answer. It returns nil if e has the same answer already. The
// caller holds the lock.
func (q *Queue) checkAnswer(e *entry, a *Answer) error {
	switch {
	case e == nil:
		return lathe.CodeNotFound.Errorf(opAnswer, "%w: no request with this digest waits: it was decided and its run went on, or it has expired, or an earlier process asked it (Queue.Restore, or Recover of an agent, reads the requests of a store)", lathe.ErrNotFound)
	case e.answer != nil && e.print == fingerprint(a):
		return nil
	case e.answer != nil:
		return lathe.CodeConflict.Errorf(opAnswer, "%s has %s the call already", cmp.Or(e.answer.By, "another approver"), e.answer.Verb.Past())
	case !q.opts.Now().Before(e.req.ExpiresAt):
		return lathe.CodeApprovalExpired.Errorf(opAnswer, "the request has expired")
	case a.Scope != ScopeOnce && !a.scoped(e):
		return lathe.CodeInvalidRequest.Errorf(opAnswer, "the call has no such scope")
	}
	return nil
}

// scoped reports whether the scope of the answer can be granted for the call. A request from Await has no tool before the run calls Approve
// again; the rest of its scope is checked then.
func (a *Answer) scoped(e *entry) bool {
	if e.asked.Tool == nil {
		return a.Scope == ScopeCall || a.Scope == ScopeRun || a.Scope == ScopeSession && e.req.SessionID != ""
	}
	_, ok := grantOf(&e.asked, a.Scope)
	return ok
}

// Await adds a request that was read from the log of a run, so that it can be answered before the resumed run calls Approve again. It does
// not call OnAsk. waits reports whether the queue then has the request without an answer. Await does not change a request that the queue
// already has with the same digest. It adds nothing if the queue has MaxPending requests. A request that has expired is added, so that
// [Queue.Expired] returns it.
func (q *Queue) Await(r Request) (waits bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sweep()
	e := q.pending[r.Digest]
	if e == nil && len(q.pending) < q.opts.MaxPending {
		e = &entry{req: r}
		q.pending[r.Digest] = e
	}
	return e != nil && e.answer == nil
}

// Withdraw removes the requests of a run, and the approvals for that run, from memory. Call it when the run has ended. Answers in Signals
// remain until the run is deleted.
func (q *Queue) Withdraw(run string) {
	q.mu.Lock()
	maps.DeleteFunc(q.pending, func(_ string, e *entry) bool { return e.req.RunID == run })
	q.late = slices.DeleteFunc(q.late, func(r Request) bool { return r.RunID == run })
	q.mu.Unlock()
	q.opts.Grants.EndRun(run)
}

// Expired returns the requests, at most MaxPending, that have expired since the last call of Expired and whose answer Approve has not
// returned. The caller must resume their runs.
func (q *Queue) Expired() []Request {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sweep()
	late := q.late
	q.late = nil
	return late
}

// sweep removes the expired requests, and appends those whose answer was not used to late. The caller holds the lock.
func (q *Queue) sweep() {
	now := q.opts.Now()
	for digest, e := range q.pending {
		if now.Before(e.req.ExpiresAt) {
			continue
		}
		delete(q.pending, digest)
		if !e.used && len(q.late) < q.opts.MaxPending {
			q.late = append(q.late, e.req)
		}
	}
}
