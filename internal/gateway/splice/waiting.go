package splice

import (
	"context"
	"encoding/hex"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/gateway/runlog"
)

// maxWaitingJoined bounds the runs that one conversation names by waiting sentences and that are looked up: the last
// ones.
const maxWaitingJoined = 32

// A waitingTurn is a message of a conversation that said that its run waits.
type waitingTurn struct {
	text  string // without the sentence
	runID string
	// Where the run is found, sum is that of the conversation that it began with, and messages are what it has added
	// to the conversation by now.
	found    bool
	sum      Sum
	messages []lathe.Message
}

// waitingTurns returns the messages that end with a waiting sentence, by their index. A problem says that the store did not answer.
func (ht *Turns) waitingTurns(ctx context.Context, a *Request) (turns map[int]*waitingTurn, p *problem.Problem) {
	looked := map[string]*waitingTurn{} // by the run, whose log is read once
	for i := len(a.Messages) - 1; i >= 0; i-- {
		m := &a.Messages[i]
		if m.Role != lathe.RoleAssistant || len(m.Calls()) > 0 {
			continue
		}
		rest, id, ok := a.Waiting.Split(m.Text())
		if !ok {
			continue
		}
		t := &waitingTurn{text: rest, runID: id}
		if other := looked[id]; other != nil {
			t.found, t.sum, t.messages = other.found, other.sum, other.messages
		} else if looked[id] = t; len(looked) <= maxWaitingJoined && ht.opts.Index != nil {
			if p := ht.loadWaiting(ctx, a, t); p != nil {
				return nil, p
			}
		}
		if turns == nil {
			turns = map[int]*waitingTurn{}
		}
		turns[i] = t
	}
	return turns, nil
}

// loadWaiting reads the state of the run of the turn. If the run is in progress, loadWaiting waits for a limited time.
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
	t.sum, t.found, t.messages = sum, true, v.Added()
	return c.Memory.Load(t.messages)
}

// sumOf returns the sum of the conversation that the run began with; ok is false if its label has none.
func sumOf(v *runlog.View) (sum Sum, ok bool) {
	label := v.State.Run.Labels[LabelConversation]
	if len(label) != hex.EncodedLen(len(sum)) {
		return sum, false
	}
	_, err := hex.Decode(sum[:], []byte(label))
	return sum, err == nil
}

// splice appends to the conversation so far what stands in the place of the message m of the client. starts say where the run
// begins in out.
func (t *waitingTurn) splice(out []lathe.Message, m *lathe.Message, starts *turnStarts) []lathe.Message {
	at, ok := starts.sums[t.sum]
	if !ok { // the client has changed the messages before
		at, ok = starts.runs[t.runID]
	}
	if t.found && ok && len(t.messages) > 0 {
		return append(slices.Clip(out[:at]), t.messages...)
	}
	left := *m
	left.Parts = slices.DeleteFunc(slices.Clone(m.Parts), func(p lathe.Part) bool { _, is := p.(lathe.Text); return is })
	text := t.text
	if text == "" {
		text = "A call of this turn waits for an approval."
	}
	left.Parts = append(left.Parts, lathe.Text{Text: text})
	return append(out, left)
}
