package splice

import (
	"math"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/gateway/runlog"
	"github.com/lathe-run/lathe/internal/seal"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/secret"
)

// An id names one turn of its run. A turn whose number an id has no room for keeps the id of the model server.
func TestCallIDNamesItsTurn(t *testing.T) {
	t.Parallel()
	ring, err := seal.NewRing(secret.New(strings.Repeat("k", 32)))
	if err != nil {
		t.Fatal(err)
	}
	ids := &CallIDs{ring: ring, principal: "ann", run: "run_01"}
	for _, turn := range []int{1, math.MaxUint16} {
		ref, ok := ids.parse(ids.Of(turn, "call_0"))
		if !ok || ref.turn != turn {
			t.Errorf("turn %d is read as %d, %v", turn, ref.turn, ok)
		}
	}
	if id := ids.Of(math.MaxUint16+1, "call_0"); id != "call_0" {
		t.Errorf("the turn after the last one has the id %s", id)
	}
}

// Of two turns with calls of the same id the one is taken that the id of the call names.
func TestTurnIsThatOfTheID(t *testing.T) {
	t.Parallel()
	call := func(name string) lathe.Message {
		return lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Text{Text: name}, lathe.ToolCall{ID: name, Name: "weather"}}}
	}
	result := lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: "a"}}}
	v := &runlog.View{Client: map[string]bool{"a": true, "b": true}, Turns: map[string]int{"a": 1, "b": 2},
		State: loop.State{Messages: []lathe.Message{lathe.User("hi"), call("a"), result, call("b")}, Start: 1}}
	ref := callRef{turn: 2, hash: hashOfCall("a")} // as if the hashes of both were equal
	if own, _ := turnOf(v, ref); own != nil {
		t.Errorf("the turn before was taken: %v", own)
	}
	ref.hash = hashOfCall("b")
	if own, _ := turnOf(v, ref); len(own) != 1 || own[0].Text() != "b" {
		t.Errorf("the turn is %v", own)
	}
}
