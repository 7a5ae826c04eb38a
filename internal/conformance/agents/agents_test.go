package agents

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/lathe-run/lathe/internal/connect"
)

// Agents with the settings of docs/connect.md: every case passes for every agent. The fast subset runs unless -agents says
// otherwise.
func TestAgents(t *testing.T) {
	root, err := Dir()
	if err != nil {
		t.Fatal(err)
	}
	selected, err := Fast()
	if err != nil {
		t.Fatal(err)
	}
	if *every {
		selected = All
	}
	m := newMatrix(selected)
	slots := make(chan struct{}, 2)
	t.Run("all", func(t *testing.T) {
		for _, a := range selected {
			t.Run(a.Name, func(t *testing.T) {
				version, err := a.Installed(root)
				if err != nil {
					t.Skip(err)
				}
				m.version(a, version)
				for i := range scenarios {
					k := &scenarios[i]
					if k.next && a.more == nil {
						m.note(a, k, errors.New("–"), "")
						continue
					}
					t.Run(k.name, func(t *testing.T) {
						t.Parallel()
						slots <- struct{}{}
						defer func() { <-slots }()
						c := &cell{agent: a, scenario: k, root: root}
						problem := c.run(t)
						m.note(a, k, problem, c.footnote())
						t.Logf("%s, %s: %s%s", a.Name, k.name, c.took.Round(100*time.Millisecond), c.footnote())
						if problem != nil {
							t.Errorf("%v\nupstream:\n%soutput of %s:\n%s", problem, c.upstream, a.Name, tail(c.output.String(), 6000))
						}
					})
				}
			})
		}
	})
	if *every {
		m.write(t)
	}
}

// modelPaths are the paths of base URLs of models by their wire.
var modelPaths = map[string]string{"responses": "/v1", "anthropic": "/v1", "gemini": "/v1beta"}

// ownWires are the wires of models by those of agents.
var ownWires = map[string]string{connect.Chat: "openai", connect.Responses: "responses", connect.Messages: "anthropic", connect.Gemini: "gemini"}

// The wire of the model does not matter to the agent: its own tool and the server's run in one turn.
func TestAgentsOverOtherWires(t *testing.T) {
	root, err := Dir()
	if err != nil {
		t.Fatal(err)
	}
	selected, err := Fast()
	if err != nil {
		t.Fatal(err)
	}
	for i, wire := range []string{"anthropic", "responses", "gemini"} { // of another wire than the agent's
		wires := []string{wire}
		if *every {
			wires = slices.Sorted(maps.Keys(modelPaths))
		}
		a := selected[i]
		for _, wire := range wires {
			t.Run(a.Name+"/"+wire, func(t *testing.T) {
				if _, err := a.Installed(root); err != nil {
					t.Skip(err)
				}
				c := &cell{agent: a, scenario: &scenarios[mixed], root: root, wire: wire}
				if problem := c.run(t); problem != nil {
					t.Errorf("%v\nupstream:\n%soutput of %s:\n%s", problem, c.upstream, a.Name, tail(c.output.String(), 6000))
				}
			})
		}
	}
}
