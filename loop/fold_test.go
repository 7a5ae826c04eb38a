package loop_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
)

// eventsOf makes a sequence of events of bytes: any sequence may come of them, those that a run could
// have among them. Their IDs are the distance to the event before.
func eventsOf(steps []byte) []event.Event {
	events := make([]event.Event, len(steps))
	turn := 0
	for i, b := range steps {
		call1, id := fmt.Sprintf("c%d", b/16%3), int64(1)
		m := lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{call("c0", "read", "{}"), call("c1", "read", "{}"), call("c0", "read", "{}")}}
		cost := 0.5
		data := []event.Data{
			&event.RunStarted{Messages: []lathe.Message{lathe.User("x")}, Input: json.RawMessage(`{"version":1}`)},
			&event.ModelCallStarted{Attempt: int(b) % 4, Messages: 1},
			&event.ModelCallFinished{Status: "success", Message: &m, Usage: lathe.Usage{InputTokens: 1, TotalTokens: 1}, ProviderCost: &cost},
			&event.ToolCallPlanned{ToolCallID: call1, Seq: int(b)},
			&event.ApprovalRequested{ToolCallID: call1, ArgsDigest: "d", ExpiresAt: time.Unix(int64(b), 0)},
			&event.ApprovalResolved{ToolCallID: call1, Decision: []string{"approved", "edited", "answered", "denied", "expired", "?"}[int(b)%6]},
			&event.ToolCallExecuted{ToolCallID: call1},
			&event.ToolCallResult{ToolCallID: call1, Status: []string{"ok", "error"}[b%2], Result: "r"},
			&event.RunPaused{Reason: lathe.ReasonAwaitingApproval, Pending: []string{call1}},
			&event.RunResumed{},
			&event.ModelCallFinished{Status: "success", FinishReason: lathe.FinishStop},
			&event.ModelCallFinished{Status: "error"},
			&event.ToolCallProposed{ToolCallID: call1},
			&event.ToolCallParseError{},
			&event.RunFinished{Reason: lathe.ReasonAnswered},
			&event.TextDelta{Text: "x"},
		}[int(b)%16]
		switch {
		case i == 0 && b%32 != 31:
			data = &event.RunStarted{Messages: []lathe.Message{lathe.User("x")}}
		case b == 255:
			id = 2
		case b == 254:
			data = nil
		case b == 253:
			turn--
		case b%16 == 1:
			turn++
		}
		events[i] = event.Event{ID: id, RunID: "r", Turn: turn, Data: data}
	}
	return events
}

// holdsFold checks that the fold of the steps is total, a function of the events, the same for every way
// of cutting them in two, and that an event that is refused changes nothing.
func holdsFold(t *testing.T, steps []byte) {
	t.Helper()
	var taken []event.Event
	s := &loop.State{}
	for _, e := range eventsOf(steps) {
		e.ID += s.LastID
		before := *s
		if err := s.Apply(&e); err != nil {
			if !reflect.DeepEqual(before, *s) {
				t.Fatalf("%v: a refused event changed the state", steps)
			}
			continue
		}
		taken = append(taken, e)
	}
	whole, err := loop.Fold(taken)
	if err != nil || !reflect.DeepEqual(whole, s) {
		t.Fatalf("%v: two folds of %d events differ: %v", steps, len(taken), err)
	}
	for cut := range taken {
		part, err := loop.Fold(taken[:cut])
		if err != nil {
			t.Fatalf("%v: %v", steps, err)
		}
		for i := range taken[cut:] {
			if err := part.Apply(&taken[cut+i]); err != nil {
				t.Fatalf("%v: cut at %d: %v", steps, cut, err)
			}
		}
		if !reflect.DeepEqual(whole, part) {
			t.Fatalf("%v: cut at %d the fold differs", steps, cut)
		}
	}
}

// F21: the fold of any sequence of events is a function.
func TestF21_FoldOfAnySequence(t *testing.T) {
	t.Parallel()
	n := 3_000
	if s := os.Getenv("LATHE_SOAK_SEEDS"); s != "" {
		seeds, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		n = 20 * seeds
	}
	rng := rand.New(rand.NewPCG(1, 2))
	long := 0
	for range n {
		steps := make([]byte, rng.IntN(24))
		for i := range steps {
			steps[i] = byte(rng.IntN(256))
			if steps[i]%16 >= 14 && rng.IntN(8) > 0 { // an end, or what never is in a log, only now and then
				steps[i] -= 13
			}
		}
		if holdsFold(t, steps); len(steps) > 12 {
			long++
		}
	}
	if long == 0 {
		t.Error("all sequences were short")
	}
}

func FuzzFold(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Add([]byte{0, 1, 2, 3, 3, 4, 4, 7, 7, 8, 9, 1, 2, 7})
	f.Add([]byte{0, 1, 2, 3, 4, 253, 254, 255, 14, 15})
	f.Fuzz(func(t *testing.T, steps []byte) {
		if len(steps) > 64 {
			steps = steps[:64]
		}
		holdsFold(t, steps)
	})
}
