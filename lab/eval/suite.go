package eval

import (
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
)

// A Suite is a list of scenarios that belong together.
type Suite struct {
	Name     string
	Settings []Setting // of the strategy [Production]
	Presets  []preset  // in the order of the file
	// MeasuresLathe means that the asserts test Lathe, whatever calls a model makes. Then
	// only they decide: a run without calls, a failed tool and a reached limit are not failures.
	MeasuresLathe bool
	// Models are the models to measure if the caller names none.
	Models []string
	// Scenarios in the order of the file. Their ids are unique.
	Scenarios []*Scenario
}

// A preset names some scenarios of a suite.
type preset struct {
	Name string
	IDs  []string
}

// All is the preset that every suite has: all its scenarios.
const All = "all"

// A Setting sets one key of the configuration, by its name below tool_calling.
type Setting struct {
	From  string `json:"-"` // where it stands, for errors: "state.yaml:12", "--max-iterations"
	Key   string `json:"key"`
	Value string `json:"value"`
}

// A Scenario is one thing that a model is asked to do. In System and User, {workspace_id} stands for
// the id of the run's workspace.
type Scenario struct {
	ID       string         `json:"id"`
	Title    string         `json:"title"`
	System   string         `json:"system,omitempty"`
	User     string         `json:"user"`
	Settings []Setting      `json:"settings,omitempty"` // win over all others
	Sampling lathe.Sampling `json:"sampling"`
	State    state          `json:"state"`
	// Tools stand in place of the tools over the state; those are there only where State is not empty.
	Tools   []mockTool `json:"tools,omitempty"`
	Guard   *guard     `json:"guard,omitempty"` // nil allows
	Asserts []assert   `json:"asserts"`
	// Category groups scenarios in reports; empty: each stands for itself.
	Category string `json:"category,omitempty"`
	// Database is a JSON object that the steps of Tools read and change. Gold is what a model does that makes no error. After a run the
	// database must be as the calls of Gold leave it. A scenario with Gold does not require calls (tool_use_mode relaxed), but
	// if Gold has calls, a run without any fails; if it has none, the scenario is a control.
	Database json.RawMessage `json:"database,omitempty"`
	Gold     []GoldTurn      `json:"gold,omitempty"`
	// Simulator replies to the model's answers; nil: the run ends with the first answer.
	Simulator *userSimulator `json:"user_simulator,omitempty"`

	final json.RawMessage // what goldDatabase found when the scenario was read
	// Ask, when set, stands in place of System, User, State and Asserts.
	Ask *Ask `json:"ask,omitempty"`
}

// control reports whether the scenario turns tools off, or has none to call: a model that calls nothing passes it.
func (sc *Scenario) control() bool {
	return sc.Gold != nil && !sc.goldCalls() || slices.ContainsFunc(sc.Settings, func(s Setting) bool {
		return s.Key == "tool_use_mode" && s.Value == string(lathe.ModeDisabled)
	})
}

// provokes reports whether the scenario asks for a mistake on purpose: it says how a model recovers, not how well it uses tools.
func (sc *Scenario) provokes() bool {
	return slices.ContainsFunc(sc.Asserts, func(a assert) bool { return a.Provoked })
}

// sampled returns the scenario with those of the parameters that it does not set itself.
func (sc *Scenario) sampled(with lathe.Sampling) *Scenario {
	if with.Seed == nil && with.Temperature == nil && with.TopP == nil {
		return sc
	}
	out := *sc
	for _, p := range []struct{ into, from **float64 }{{&out.Sampling.Temperature, &with.Temperature}, {&out.Sampling.TopP, &with.TopP}} {
		if *p.into == nil {
			*p.into = *p.from
		}
	}
	if out.Sampling.Seed == nil {
		out.Sampling.Seed = with.Seed
	}
	return &out
}

// A state is what the workspace of a run starts with. The values are JSON objects.
type state struct {
	Facts json.RawMessage `json:"facts,omitempty"`
	Draft json.RawMessage `json:"draft,omitempty"`
	UI    json.RawMessage `json:"ui_state,omitempty"`
}

//go:embed state.yaml injection.yaml faults.yaml retail.yaml airline.yaml skills.yaml
var files embed.FS

// Builtin returns the suite that comes with Lathe: eight scenarios over the state that the tools
// state_get and state_patch read and change. Its presets are default, simple, typical, extreme and all.
func Builtin() *Suite { return shipped("state") }

// Injection returns the suite of texts that tell a model what it must not do: in results, documents,
// descriptions and arguments. It measures Lathe: whatever the model does, the effect must not come.
func Injection() *Suite { return shipped("injection") }

// Faults returns the suite of tools that misbehave. It measures Lathe: each call is answered, once,
// with the right code.
func Faults() *Suite { return shipped("faults") }

func shipped(name string) *Suite {
	b, err := files.ReadFile(name + ".yaml")
	if err != nil {
		panic("eval: a suite that comes with Lathe: " + err.Error())
	}
	s, err := Parse(name, b)
	if err != nil {
		panic("eval: a suite that comes with Lathe: " + err.Error())
	}
	return s
}

// Retail returns the suite of a shop's customer service: conversations in which a model changes orders, as far as the shop's policy
// allows it.
func Retail() *Suite { return shipped("retail") }

// Airline returns the suite of an airline's customer service.
func Airline() *Suite { return shipped("airline") }

// Skills returns the suite of single skills, by category: long lists of tools, parallel calls, requests that no tool fits, errors of
// tools, instructions in results, long arguments, and texts and numbers that must stay as they are.
func Skills() *Suite { return shipped("skills") }

// Select returns the scenarios of that preset, in the suite's order. An empty name is the preset
// default where there is one, else all.
func (s *Suite) Select(preset string) ([]*Scenario, error) {
	names := []string{All}
	for _, p := range s.Presets {
		names = append(names, p.Name)
		if p.Name == preset || preset == "" && p.Name == "default" {
			return s.Find(p.IDs...)
		}
	}
	if preset == "" || preset == All {
		return s.Scenarios, nil
	}
	return nil, fmt.Errorf("suite %s has no preset %q, it has %s", s.Name, preset, strings.Join(names, ", "))
}

// Find returns the scenarios with those ids, in the suite's order.
func (s *Suite) Find(ids ...string) ([]*Scenario, error) {
	var found []*Scenario
	var known []string
	for _, sc := range s.Scenarios {
		known = append(known, sc.ID)
		if slices.Contains(ids, sc.ID) {
			found = append(found, sc)
		}
	}
	for _, id := range ids {
		if !slices.Contains(known, id) {
			return nil, fmt.Errorf("suite %s has no scenario %q, it has %s", s.Name, id, strings.Join(known, ", "))
		}
	}
	return found, nil
}

// usesState reports whether the tools over the state are there.
func (sc *Scenario) usesState() bool {
	if sc.Gold != nil {
		return false
	}
	return len(sc.Tools) == 0 || sc.State.Facts != nil || sc.State.Draft != nil || sc.State.UI != nil
}

// conversational returns the settings of a scenario with gold actions: in a conversation not every answer makes a call, and a call that is
// refused for a reason is no failure.
func (sc *Scenario) conversational() []Setting {
	if sc.Gold == nil {
		return nil
	}
	return []Setting{{Key: "tool_use_mode", Value: string(lathe.ModeRelaxed)}}
}

// stateTools are the names of the tools over the state.
var stateTools = []string{"state_get", "state_patch", "facts_commit"}

// toolNames returns the names of the tools that there are in a run, hidden ones included.
func (sc *Scenario) toolNames() []string {
	var names []string
	if sc.usesState() {
		names = slices.Clone(stateTools)
	}
	for i := range sc.Tools {
		names = append(names, sc.Tools[i].Name)
	}
	return names
}

// untold returns the texts that the model must not be sent.
func (sc *Scenario) untold() []string {
	var texts []string
	for i := range sc.Asserts {
		if sc.Asserts[i].Kind == assertUntold {
			texts = append(texts, sc.Asserts[i].Text)
		}
	}
	return texts
}
