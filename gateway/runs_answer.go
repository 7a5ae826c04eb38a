package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/observe"
)

// settleTime is how long a request waits until what it brought is in the log of the run.
const settleTime = 5 * time.Second

// maxResults bounds the results of one request.
const maxResults = 1000

// resume goes on with a run that waits. The caller holds its lock.
func (g *Gateway) resume(ctx context.Context, c *caller, v *runView, answers map[string]lathe.Output) *problem {
	if p := g.takes(); p != nil {
		return p
	}
	if v.state.Paused == "" {
		return elsewhere()
	}
	l, p := c.loopOf(v)
	if p != nil {
		return p
	}
	setup := g.hold(c.setup)
	if err := g.opts.Crew.Resume(ctx, l, v.state.Run.RunID, answers, setup); err != nil {
		setup.free()
		return g.runFailed(c, err)
	}
	return nil
}

// loopOf returns the loop that a run was begun with.
func (c *caller) loopOf(v *runView) (*loop.Loop, *problem) {
	m, p := c.model(v.state.Target)
	switch {
	case p != nil && p.Status == http.StatusNotFound:
		return nil, conflict("model_gone", "The model that the run was begun with is not configured any more.")
	case p != nil:
		return nil, p
	}
	return m.Loop, nil
}

// settled waits until settles has seen the events that it looks for, after the last one that v has, or the
// run has ended or, unless it is known to go on then, waits again, or it took too long. It reports whether
// they were seen.
func (g *Gateway) settled(ctx context.Context, sub *observe.Subscription, v *runView, goesOn bool, settles func(lathe.EventData) bool) bool {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	last := v.state.LastID
	over, seen := false, false
	look := func(e *lathe.Event) {
		if e.ID <= last || over {
			return
		}
		last = e.ID
		switch e.Data.(type) {
		case *lathe.RunPaused:
			over = !goesOn
		case *lathe.RunFinished:
			over = true
		default: // it goes on
		}
		if settles(e.Data) {
			over, seen = true, true
		}
	}
	for !over {
		heard, stop := context.WithTimeout(ctx, g.opts.Limits.Poll)
		e, err := sub.Next(heard)
		stop()
		switch {
		case err == nil:
			look(&e)
		case ctx.Err() != nil:
			return false
		case g.shared == nil && !errors.Is(err, context.DeadlineExceeded):
			return false
		case g.shared != nil: // it may be carried elsewhere
			for e, err := range g.opts.Index.Read(ctx, v.state.Run.RunID, last) {
				if err != nil {
					return false
				}
				look(&e)
			}
		}
	}
	return seen
}

// A decision is the body of an answer to an approval.
type decision struct {
	Decision  approval.Verb   `json:"decision"`
	Digest    string          `json:"digest"`
	Reason    string          `json:"reason"`
	Scope     approval.Scope  `json:"scope"`
	Arguments json.RawMessage `json:"arguments"`
	Result    json.RawMessage `json:"result"`
}

// readObject reads a body that is an object with these members only.
func (g *Gateway) readObject(w http.ResponseWriter, r *http.Request, dst any, want string, names ...string) *problem {
	body, p := g.readBody(w, r)
	if p != nil {
		return p
	}
	if err := rawjson.Check(body, rawjson.Limits{}); err != nil {
		return &problem{Status: http.StatusBadRequest, Code: "invalid_json", Message: "The body is not acceptable JSON: " + err.Error() + "."}
	}
	body = body[rawjson.SkipSpace(body, 0):]
	if body[0] != '{' {
		return badWish("", "The body must be an object: %s.", want)
	}
	if p := eachMember(body, "", names, func(string, string, []byte) *problem { return nil }); p != nil {
		return p.under()
	}
	if err := json.Unmarshal(body, dst); err != nil {
		return badWish("", "The body must be like %s.", want)
	}
	return nil
}

// answerApproval answers what a run asked about one call, and goes on with it. The first answer
// counts; it is good for the arguments that were shown, and until the request expires.
func (g *Gateway) answerApproval(w http.ResponseWriter, r *http.Request, c *caller) {
	var d decision
	p := g.readObject(w, r, &d, `{"decision":"approve","digest":"…"}`, "decision", "digest", "reason", "scope", "arguments", "result")
	if p == nil && g.opts.Desk == nil {
		p = conflict("no_approvals", "Nobody can be asked on this server.")
	}
	if p == nil && d.Digest == "" {
		p = badWish("digest", "Say the args_digest of the call: it stands for what you were shown.")
	}
	if p != nil {
		c.fail(w, p)
		return
	}
	id := r.PathValue("id")
	unlock, err := g.held.lock(r.Context(), id)
	if err != nil {
		return // the client left
	}
	defer unlock()
	v, owned, p := g.viewToDecide(r.Context(), c, id)
	status := http.StatusOK
	switch {
	case p != nil:
	case !c.key.mayDecide(v.state.Run.Principal):
		p = mayNotDecide()
	default:
		status, p = g.decide(r.Context(), c.acting(owned), v, r.PathValue("call"), &d, c.decider())
	}
	if p == nil {
		v, _, p = g.viewToDecide(r.Context(), c, id)
	}
	if p != nil {
		c.fail(w, p)
		return
	}
	b := g.body(r.Context(), c, v)
	if !owned {
		b.Answer, b.Labels = "", nil
	}
	c.answerAs(w, status, b)
}

// decide answers 200 when the decision is in the log, and 202 when it will be looked at.
func (g *Gateway) decide(ctx context.Context, c *caller, v *runView, call string, d *decision, by string) (int, *problem) {
	id := v.state.Run.RunID
	o, p := g.asked(ctx, v, call)
	if p != nil {
		return 0, p
	}
	if o.Digest != d.Digest {
		return 0, conflict("digest_mismatch", "The digest is not that of the call: look at the run again.")
	}
	live := g.carries(id)
	if !g.opts.Now().Before(o.ExpiresAt) {
		if !live {
			_ = g.resume(ctx, c, v, nil) // so that it goes on; the answer is late either way
		}
		return 0, conflict(string(lathe.CodeApprovalExpired), "The request for approval has expired.")
	}
	waits := g.opts.Desk.Await(v.request(o))
	err := g.opts.Desk.Answer(ctx, o.Digest, approval.Answer{Verb: d.Decision, By: by, ReasonCode: d.Reason, Scope: d.Scope, Arguments: d.Arguments, Result: d.Result})
	switch code := lathe.CodeOf(err); {
	case code == lathe.CodeInvalidRequest:
		return 0, badWish("decision", "The decision cannot be taken: %s.", cause(err))
	case code == lathe.CodeApprovalExpired:
		return 0, conflict(string(code), "The request for approval has expired.")
	case code == lathe.CodeUnavailable, code == lathe.CodeTimeout:
		return 0, g.storeFailed(c, err)
	case err != nil, !waits && live:
		return 0, g.decided(ctx, v, o.ID)
	}
	return g.apply(ctx, c, v, live, func(d lathe.EventData) bool {
		e, ok := d.(*lathe.ApprovalResolved)
		return ok && e.ToolCallID == o.ID
	})
}

// apply has the run take up what was kept of it in the store, now or once it waits. It answers 200 when settles
// has seen that in the log, and 202 before: at once where it is in no hurry and the run does something else.
// The caller holds the run's lock.
func (g *Gateway) apply(ctx context.Context, c *caller, v *runView, later bool, settles func(lathe.EventData) bool) (int, *problem) {
	id := v.state.Run.RunID
	sub := g.opts.Bus.Subscribe(id)
	defer sub.Close()
	goesOn := g.opts.Crew.Hint(id)
	switch {
	case goesOn:
	case g.flying.find(id) != nil:
		g.goOnLater(ctx, c, id)
		goesOn = true
	case v.state.Paused == "": // it was in motion, and may wait by now
		now, p := g.view(ctx, c, id)
		if p == nil {
			p = now.ended()
		}
		if p != nil {
			return 0, p
		}
		if goesOn = now.state.Paused == ""; goesOn && g.shared == nil {
			return 0, elsewhere()
		}
		v = now // where it goes on, whoever carries it takes it up
	}
	if !goesOn {
		later = false
		p := g.resume(ctx, c, v, nil)
		switch {
		case p == nil:
		case g.shared != nil && p.Code == "run_changed": // another process has taken it up
			goesOn = true
		case g.shared != nil && (p.Code == "overloaded" || p.Code == "draining"): // another process will
			later = true
		default:
			return 0, p // the same may be said again
		}
	}
	if later || !g.settled(ctx, sub, v, goesOn, settles) {
		return http.StatusAccepted, nil
	}
	return http.StatusOK, nil
}

// asked returns the call of the run that waits for an approval.
func (g *Gateway) asked(ctx context.Context, v *runView, call string) (*loop.OpenCall, *problem) {
	i := slices.IndexFunc(v.state.Open, func(o loop.OpenCall) bool { return o.ID == call })
	_, known := v.client[call]
	switch {
	case i < 0 && !known:
		return nil, &problem{Status: http.StatusNotFound, Code: "call_not_found", Message: "The run has no such call."}
	case v.state.Finished != nil:
		p := v.ended()
		p.name(v.decisions, call)
		return nil, p
	case i < 0, !v.state.Open[i].Asked && v.decidedOn(call):
		return nil, g.decided(ctx, v, call)
	case !v.state.Open[i].Asked:
		return nil, conflict("not_asked", "Nobody is asked about the call.")
	}
	return &v.state.Open[i], nil
}

// goOnLater has a run that goes on now take the answer that it may have missed, once it waits again.
func (g *Gateway) goOnLater(ctx context.Context, c *caller, id string) {
	own := *c
	own.setup = g.work.begin()
	ctx = context.WithoutCancel(ctx)
	go func() {
		defer g.work.end(own.setup)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(g.stopped, cancel)()
		_, _ = g.await(ctx, id) // its log says what came of it
		unlock, err := g.held.lock(ctx, id)
		if err != nil {
			return // the server stops
		}
		defer unlock()
		v, p := g.view(ctx, &own, id)
		if p == nil && v.state.Paused != "" && v.state.Finished == nil && !g.carries(id) && g.saidSince(ctx, v) {
			p = g.resume(ctx, &own, v, nil)
		}
		if p != nil {
			g.opts.Log.Error("a run could not be gone on with", "run_id", id, "code", p.Code)
		}
	}()
}

// saidSince reports whether something that the run waits for is in the store by now.
func (g *Gateway) saidSince(ctx context.Context, v *runView) bool {
	facts, err := g.facts.Facts(ctx, v.state.Run.RunID)
	return err == nil && slices.ContainsFunc(facts, func(f lathe.Fact) bool {
		return slices.ContainsFunc(v.state.Open, func(o loop.OpenCall) bool {
			return o.ID == f.Key && (f.Kind == lathe.FactResult || f.Kind == lathe.FactApproval && o.Asked)
		})
	})
}

// A resultBody is what a client says came of its call. Content is a text, or JSON that stands for one.
type resultBody struct {
	ID      string          `json:"tool_call_id"`
	Content json.RawMessage `json:"content"`
	IsError bool            `json:"is_error"`
}

// takeResults takes what came of the client's calls, and goes on with the run.
func (g *Gateway) takeResults(w http.ResponseWriter, r *http.Request, c *caller) {
	var body struct {
		Results []resultBody `json:"results"`
	}
	answers := map[string]lathe.Output{}
	p := g.readObject(w, r, &body, `{"results":[{"tool_call_id":"…","content":"…"}]}`, "results")
	if p == nil {
		p = readResults(body.Results, answers)
	}
	if p != nil {
		c.fail(w, p)
		return
	}
	id := r.PathValue("id")
	unlock, err := g.held.lock(r.Context(), id)
	if err != nil {
		return // the client left
	}
	defer unlock()
	v, p := g.view(r.Context(), c, id)
	status := http.StatusOK
	if p == nil {
		status, p = g.giveResults(r.Context(), c, v, answers)
	}
	if p != nil {
		c.fail(w, p)
		return
	}
	g.answerRun(w, r, c, id, status)
}

func readResults(results []resultBody, answers map[string]lathe.Output) *problem {
	if len(results) == 0 || len(results) > maxResults {
		return badWish("results", "There must be 1 to %d results.", maxResults)
	}
	for i := range results {
		one := &results[i]
		if _, twice := answers[one.ID]; one.ID == "" || twice {
			return badWish("results", "Each result names the tool_call_id of another call.")
		}
		if len(one.Content) == 0 {
			return badWish("results", "Each result has a content, a text or a JSON value.")
		}
		answers[one.ID] = lathe.Output{Data: one.Content, IsError: one.IsError}
	}
	return nil
}

// giveResults keeps the results and has the run take them up. It answers as apply does.
func (g *Gateway) giveResults(ctx context.Context, c *caller, v *runView, answers map[string]lathe.Output) (int, *problem) {
	if p := v.takes(answers); p != nil {
		return 0, p
	}
	id := v.state.Run.RunID
	if v.state.Paused == "" && g.shared == nil && !g.carries(id) {
		return 0, elsewhere()
	}
	for call, out := range answers {
		if p := g.keepResult(ctx, c, id, call, out); p != nil {
			return 0, p
		}
	}
	missing := len(answers)
	return g.apply(ctx, c, v, false, func(d lathe.EventData) bool {
		if e, ok := d.(*lathe.ToolCallResult); ok {
			if _, mine := answers[e.ToolCallID]; mine {
				missing--
			}
		}
		return missing == 0
	})
}

// keepResult stores one result. The first one of a call wins; the same one may be given again.
func (g *Gateway) keepResult(ctx context.Context, c *caller, id, call string, out lathe.Output) *problem {
	f, err := engine.ResultFact(id, call, out)
	if err == nil {
		err = g.facts.PutFact(ctx, f)
	}
	if lathe.CodeOf(err) == lathe.CodeConflict {
		var facts []lathe.Fact
		if facts, err = g.facts.Facts(ctx, id); err == nil && !slices.ContainsFunc(facts, func(k lathe.Fact) bool {
			return k.Kind == f.Kind && k.Key == f.Key && bytes.Equal(k.Body, f.Body)
		}) {
			return conflict("already_answered", "The call has its result already.")
		}
	}
	if err != nil {
		return g.runFailed(c, err)
	}
	return nil
}

// takes says why the run does not take results for these calls.
func (v *runView) takes(answers map[string]lathe.Output) *problem {
	for id := range answers {
		client, known := v.client[id]
		switch {
		case !known:
			return badWish("results", "The run has no call of this id.")
		case !client:
			return badWish("results", "The call is one of this server's tools: its result does not come from a client.")
		}
	}
	if p := v.ended(); p != nil {
		return p
	}
	for id := range answers {
		if !slices.ContainsFunc(v.state.Open, func(o loop.OpenCall) bool { return o.ID == id }) {
			return conflict("already_answered", "The call has its result already.")
		}
	}
	return nil
}

func elsewhere() *problem {
	return conflict("run_elsewhere", "The run goes on in another process, or in one that is gone.")
}
