package agents

import (
	"testing"

	"github.com/lathe-run/lathe/internal/connect"
)

// The agents that are tested are those of `lathe connect`, in its order, on its wires and in the versions that it names.
func TestAgentsAreThoseOfConnect(t *testing.T) {
	fast, rest, err := pins()
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range connect.Agents {
		if i >= len(All) {
			t.Errorf("%s is not tested", a.Name)
			continue
		}
		have := All[i]
		if pin := fast[have.Package] + rest[have.Package]; have.Name != a.Name || have.Wire != a.Wire || pin != a.Tested {
			t.Errorf("agent %d is %s %s on %s, and connect has %s %s on %s", i, have.Name, pin, have.Wire, a.Name, a.Tested, a.Wire)
		}
	}
	if len(All) > len(connect.Agents) {
		t.Errorf("%d agents, and connect has %d", len(All), len(connect.Agents))
	}
}
