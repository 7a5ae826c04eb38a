package splice

import (
	"cmp"
	"context"
	"encoding/hex"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/gateway/runlog"
)

// maxWaitingJoined bounds the runs that are looked up for waiting sentences in one conversation. If there are more, the last ones are
// looked up.
const maxWaitingJoined = 32

// A waitingTurn is a message of a conversation that ends with the sentence that its run waits.
type waitingTurn struct {
	text  string // text of the message without the sentence
	runID string
	// If the run is found, sum is the sum of the conversation with which it began, and messages are those that it has added to the
	// conversation so far; else there are none.
	session  bool // the run belongs to the session of the request
	sum      Sum
	messages []lathe.Message
}

// waitingTurns returns the messages that end with a waiting sentence, by index. It returns a problem if the store did not answer.
func (ht *Turns) waitingTurns(ctx context.Context, req *Request) (turns map[int]*waitingTurn, p *problem.Problem) {
	turns = map[int]*waitingTurn{}
	looked := map[string]*waitingTurn{} // by run id; the log of a run is read once
	for i := range slices.Backward(req.Messages) {
		m := &req.Messages[i]
		if m.Role != lathe.RoleAssistant || len(m.Calls()) > 0 {
			continue
		}
		rest, id, ok := req.Waiting.Split(m.Text())
		if !ok {
			continue
		}
		t := &waitingTurn{text: rest, runID: id}
		turns[i] = t
		if other := looked[id]; other != nil {
			t.session, t.sum, t.messages = other.session, other.sum, other.messages
			continue
		}
		looked[id] = t
		if ht.opts.Index == nil || len(looked) > maxWaitingJoined {
			continue
		}
		if p := ht.loadWaiting(ctx, req, t); p != nil {
			return nil, p
		}
	}
	return turns, nil
}

// loadWaiting reads the state of the run of the turn. If the run is active, loadWaiting waits for a limited time until it is suspended.
func (ht *Turns) loadWaiting(ctx context.Context, c *Request, t *waitingTurn) *problem.Problem {
	v, p := c.Runs.Suspended(ctx, t.runID)
	if p.Absent() {
		return nil
	}
	if p != nil {
		return p
	}
	sum, ok := sumOf(v)
	if !ok {
		return nil
	}
	t.sum, t.messages, t.session = sum, v.Added(), v.State.Run.SessionID == c.Session
	return c.Memory.Load(t.messages)
}

// sumOf returns the sum of the conversation with which the run began; ok is false if the run has no valid label.
func sumOf(v *runlog.View) (sum Sum, ok bool) {
	label := v.State.Run.Labels[LabelConversation]
	if len(label) != hex.EncodedLen(len(sum)) {
		return sum, false
	}
	_, err := hex.Decode(sum[:], []byte(label))
	return sum, err == nil
}

// splice appends the messages that replace the client's message m to out. starts contains the index in out at which the run begins. If the
// client has changed what stands before, the run begins at its first call with an id of the gateway. Without one it begins at m if it is of
// the same session and m follows a message of the user, since nothing of the run can stand between them.
func (t *waitingTurn) splice(out []lathe.Message, m *lathe.Message, starts *turnStarts) []lathe.Message {
	at, ok := starts.sums[t.sum]
	if !ok {
		at, ok = starts.runs[t.runID]
	}
	followsUser := len(out) > 0 && out[len(out)-1].Role == lathe.RoleUser
	if !ok && t.session && followsUser {
		at, ok = len(out), true
	}
	if ok && len(t.messages) > 0 {
		return append(slices.Clip(out[:at]), t.messages...)
	}
	left := *m
	left.Parts = slices.DeleteFunc(slices.Clone(m.Parts), func(p lathe.Part) bool { _, is := p.(lathe.Text); return is })
	left.Parts = append(left.Parts, lathe.Text{Text: cmp.Or(t.text, "A call of this turn waits for an approval.")})
	return append(out, left)
}
