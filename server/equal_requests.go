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

// labelRequest is the label of a run that contains the digest of the request that began it. Clients do not see it among the
// labels of the run.
const labelRequest = "lathe_equal_request_sha256"

// hiddenLabel reports whether only the gateway sets the label, so that clients do not see it.
func hiddenLabel(name string) bool {
	return name == labelFingerprint || name == splice.LabelConversation || name == labelRequest || name == labelResponse
}

// shownLabels returns a copy of the labels without hidden ones.
func shownLabels(labels map[string]string) map[string]string {
	shown := maps.Clone(labels)
	maps.DeleteFunc(shown, func(name, _ string) bool { return hiddenLabel(name) })
	return shown
}

// withLabel returns the labels and a further one with the digest, or only the labels if there are loop.MaxLabels.
func withLabel(labels map[string]string, name string, sum [sha256.Size]byte) map[string]string {
	if len(labels) >= loop.MaxLabels {
		return labels
	}
	return withOwn(labels, map[string]string{name: hex.EncodeToString(sum[:])})
}

// A requestSum is the digest of a request and its key. Equal requests have the same digest, whether or not they are
// streamed.
type requestSum [sha256.Size]byte

// digest returns the digest of the request. It computes it at the first call: a relayed request needs none.
func (a *request) digest() requestSum {
	if a.equal == (requestSum{}) {
		a.equal = a.sumFirst(wholeConversation)
	}
	return a.equal
}

// wholeConversation stands for all elements of a conversation.
const wholeConversation = -1

// sumFirst computes the digest of the request with only the first n elements of its conversation. The body must have been
// checked. The model in the path of a Gemini request is part of the digest; whether the answer is streamed is not.
// The order of members, at any depth, has no effect: Codex changes the order of the members of client_metadata each time it
// sends a request again.
func (a *request) sumFirst(n int) requestSum {
	head := []string{a.caller.key.Name}
	if w := a.protocol.Wire(); w != lathe.WireOpenAIChat {
		head = append(head, string(w), a.req.Model)
	}
	return sumBody(head, a.req.Body, func(name, v []byte) []byte {
		switch {
		case rawjson.EqualKey(name, "stream"), rawjson.EqualKey(name, "stream_options"):
			return nil
		case n != wholeConversation && rawjson.EqualKey(name, a.protocol.conversation):
			return firstElements(v, n)
		}
		return v
	})
}

// sumBody computes the digest of the texts of head and the members of a body that was checked. member returns the value that
// counts for a member; nil: the member does not count.
func sumBody(head []string, body []byte, member func(name, v []byte) []byte) requestSum {
	members := map[string][]byte{}
	for name, v := range rawjson.Members(body) {
		if v = member(name, v); v != nil {
			members[string(name)] = v
		}
	}
	c := splice.NewHash()
	for _, text := range head {
		c.Text(text)
	}
	var canonical []byte
	for _, name := range slices.Sorted(maps.Keys(members)) {
		c.Text(name)
		v := members[name]
		canonical = rawjson.AppendCanonicalValid(slices.Grow(canonical[:0], len(v)), v)
		c.Bytes(canonical)
	}
	return requestSum(c.Sum())
}

// key returns the key under which splice.Turns stores the run that the request began and that waits for an approval.
func (s requestSum) key() (k splice.Key) {
	return sha256.Sum256(append([]byte("waiting "), s[:]...))
}

// A waitingNote is a sink that stores the run of a request when the run is suspended for an approval, so that an equal
// request attaches to that run and does not request the approval again.
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

// findEqualRun returns the run that an equal request began and that was suspended for an approval, if it still is, if it is active
// again, or if it has completed and no client has received its answer. It returns nil if there is no such run or the store
// fails. A run that has ended, is suspended for another reason or no longer exists is forgotten, so that only one request
// gets its answer.
func (h *planner) findEqualRun(ctx context.Context, a *chat) *runlog.View {
	key := a.digest().key()
	t := h.turns.Find(key)
	if t == nil {
		return nil
	}
	v, p := h.viewOther(ctx, a.caller, t.RunID)
	if p != nil && !p.Absent() {
		return nil // the store failed, so the run may exist and is not forgotten
	}
	if p == nil && v.State.Finished == nil && (v.State.Paused == "" || v.State.Paused == lathe.ReasonAwaitingApproval) {
		return v // active, or suspended for an approval
	}
	h.turns.Forget(key)
	if p == nil && v.State.Finished != nil && v.State.Finished.Reason.Status() == "completed" {
		return v
	}
	return nil
}

// answerFrom begins the answer to the request as an answer of the existing run v. The answer gets the id, and begins after
// the first base messages of the run.
func answerFrom(ctx context.Context, a *chat, v *runlog.View, base int, id runlog.AnswerID) {
	a.session, a.base = v.State.Run.SessionID, base
	a.head.Kept = v.State.Run.Labels[labelResponse] != ""
	a.begin(ctx, id, &a.plan.model.Settings, &a.plan.model.Limits)
}

// attach makes the existing run v answer the request. The answer consists of the events that follow the event whose id is
// after. base is the number of messages of the run at that event.
func (a *chat) attach(ctx context.Context, v *runlog.View, after int64, base int) {
	run := v.State.Run.RunID
	answerFrom(ctx, a, v, base, runlog.AnswerID{Run: run, After: v.WaitBefore(base), Once: runlog.NewOnce()})
	a.follows = true
	a.job = job{loop: a.plan.model.Loop, follow: following{run, after}, holds: a.keepOpen}
}
