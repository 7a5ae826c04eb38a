package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/gateway/runlog"
	"github.com/lathe-run/lathe/internal/gateway/splice"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/loop"
)

// labelRequest is the label under which the log of a run has the digest of the request that it was begun by. It is
// not listed with those of the client.
const labelRequest = "lathe_equal_request_sha256"

// hiddenLabel reports whether a label is one of the gateway's own.
func hiddenLabel(name string) bool {
	return name == labelFingerprint || name == splice.LabelConversation || name == labelRequest || name == labelResponse
}

// shownLabels returns the labels without those of the gateway.
func shownLabels(labels map[string]string) map[string]string {
	shown := maps.Clone(labels)
	maps.DeleteFunc(shown, func(name, _ string) bool { return hiddenLabel(name) })
	return shown
}

// withLabel returns the labels with a further one, if their number is below the limit.
func withLabel(labels map[string]string, name string, sum [sha256.Size]byte) map[string]string {
	if len(labels) >= loop.MaxLabels {
		return labels
	}
	return withOwn(labels, map[string]string{name: hex.EncodeToString(sum[:])})
}

// A requestSum is the digest of a request of a key: equal requests have the same one, whether they stream or not.
type requestSum [sha256.Size]byte

// digest returns the digest of the request. It is computed when it is first needed: a request that is relayed needs none.
func (a *request) digest() requestSum {
	if a.equal == (requestSum{}) {
		a.equal = a.sumRequest()
	}
	return a.equal
}

// sumRequest returns the digest of the request, whose body was checked. The order of members does not count, at any depth: Codex
// writes the members of client_metadata in another order each time it sends a request again.
func (a *request) sumRequest() requestSum { return a.sumFirst(-1) }

// sumFirst returns the digest that the request would have with the first n elements of its conversation alone; with all
// below 0. What Gemini's paths say is part of the request, except for whether its answer is streamed.
func (a *request) sumFirst(n int) requestSum {
	body := a.req.Body
	members := map[string][]byte{}
	for name, v := range rawjson.Members(body[rawjson.SkipSpace(body, 0):]) {
		if n >= 0 && rawjson.EqualKey(name, a.protocol.conversation) {
			v = firstElements(v, n)
		}
		if !rawjson.EqualKey(name, "stream") && !rawjson.EqualKey(name, "stream_options") {
			members[string(name)] = v
		}
	}
	c := splice.NewHash()
	c.Text(a.caller.key.Name)
	if w := a.protocol.Wire(); w != lathe.WireOpenAIChat {
		c.Text(string(w))
		c.Text(a.req.Model)
	}
	var canonical []byte
	for _, name := range slices.Sorted(maps.Keys(members)) {
		c.Text(name)
		v := members[name]
		if text, err := rawjson.AppendCanonical(canonical[:0], v); err == nil { // else it is deeper than that allows, and counts as it is
			canonical, v = text, text
		}
		c.Bytes(v)
	}
	return requestSum(c.Sum())
}

// key is where the run that waits, begun by an equal request, is kept.
func (s requestSum) key() (k splice.Key) {
	return sha256.Sum256(append([]byte("waiting "), s[:]...))
}

// A waitingNote is a sink that keeps the run of a request when it begins to wait for a person, so that an equal
// request is answered by that run and does not ask again.
type waitingNote struct {
	turns *splice.Turns
	sum   requestSum
}

// Emit implements [event.Sink].
func (n *waitingNote) Emit(_ context.Context, e event.Event) {
	if d, ok := e.Data.(*event.RunPaused); ok && d.Reason == lathe.ReasonAwaitingApproval {
		n.turns.Remember(n.sum.key(), e.RunID)
	}
}

// equalRun returns the run that an equal request began and that waits for a person, or whose answer no client has
// got since it waited; nil: there is none.
func (h *planner) equalRun(ctx context.Context, a *chat) *runlog.View {
	t := h.turns.Find(a.digest().key())
	if t == nil {
		return nil
	}
	v, p := h.viewOther(ctx, a.caller, t.RunID)
	if p == nil && v.State.Finished == nil && (v.State.Paused == "" || v.State.Paused == lathe.ReasonAwaitingApproval) {
		return v
	}
	if p != nil && !p.Absent() {
		return nil // the store did not answer
	}
	h.turns.Forget(a.digest().key())
	if p != nil || v.State.Finished == nil || v.State.Finished.Reason.Status() != "completed" {
		return nil
	}
	return v
}

// attach has the request answered by a run that is there: with what it has done since an event, at which it had base messages.
func (a *chat) attach(ctx context.Context, m *Model, v *runlog.View, after int64, base int) {
	a.session, a.base = v.State.Run.SessionID, base
	a.head.Kept = v.State.Run.Labels[labelResponse] != ""
	a.begin(ctx, runlog.AnswerID{Run: v.State.Run.RunID, After: v.WaitBefore(base), Once: runlog.NewOnce()}, &m.Settings, &m.Limits)
	a.follows = true
	a.job = job{loop: m.Loop, follow: v.State.Run.RunID, after: after, holds: a.holds}
}
