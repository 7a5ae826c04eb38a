package eval

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
)

// A Suite is a list of scenarios, with settings.
type Suite struct {
	Name     string
	Settings []Setting // settings of the strategy [Production]
	Presets  []preset  // in the order of the file
	// MeasuresLathe says that the asserts test Lathe and not the model, so only the asserts decide. A run without calls, a failed tool and
	// a reached limit are then no failures.
	MeasuresLathe bool
	// Models are the models to measure if the caller names none.
	Models []string
	// Scenarios are in the order of the file. Their ids are unique.
	Scenarios []*Scenario
}

// A preset is a named selection of scenarios of a suite.
type preset struct {
	Name string
	IDs  []string
}

// All is the name of the preset with all scenarios, which every suite has.
const All = "all"

// A Setting sets one key of the configuration section tool_calling.
type Setting struct {
	From  string `json:"-"` // where it was set, for errors: "state.yaml:12", "--max-iterations"
	Key   string `json:"key"`
	Value string `json:"value"`
}

// A Scenario is one task for a model. In System and User, {workspace_id} is replaced by the id of the run's workspace.
type Scenario struct {
	ID       string         `json:"id"`
	Title    string         `json:"title"`
	System   string         `json:"system,omitempty"`
	User     string         `json:"user"`
	Settings []Setting      `json:"settings,omitempty"` // override all other settings
	Sampling lathe.Sampling `json:"sampling"`
	State    state          `json:"state"`
	// Tools are the tools of the scenario. If there are none, or if State is not empty, the tools of the workspace are
	// offered, too, unless the scenario has Gold.
	Tools   []mockTool `json:"tools,omitempty"`
	Guard   *guard     `json:"guard,omitempty"` // nil: everything is allowed
	Asserts []assert   `json:"asserts"`
	// Category groups scenarios in reports; "": the scenario is not grouped.
	Category string `json:"category,omitempty"`
	// Database is a JSON object that the steps of Tools read and change. Gold are the actions of a model that makes no mistakes: after a
	// run, the database must equal the database after the calls of Gold. With Gold, the run uses tool_use_mode relaxed, and a run without
	// calls fails only if Gold has calls. If Gold has no calls, the scenario is a control.
	Database json.RawMessage `json:"database,omitempty"`
	Gold     []GoldTurn      `json:"gold,omitempty"`
	// Simulator plays the user, who replies to answers of the model; nil: the run ends with the first answer.
	Simulator *userSimulator `json:"user_simulator,omitempty"`

	final json.RawMessage // cached result of goldDatabase
	// Ask, if not nil, replaces System, User, State and Asserts.
	Ask *Ask `json:"ask,omitempty"`
}

// control reports whether the scenario turns tools off or has no gold calls: a model that calls nothing can pass it.
func (sc *Scenario) control() bool {
	return sc.Gold != nil && !sc.goldCalls() || slices.ContainsFunc(sc.Settings, func(s Setting) bool {
		return s.Key == "tool_use_mode" && s.Value == string(lathe.ModeDisabled)
	})
}

// sampled returns the scenario with those parameters of with that it does not set itself.
func (sc *Scenario) sampled(with lathe.Sampling) *Scenario {
	if with.Seed == nil && with.Temperature == nil && with.TopP == nil {
		return sc
	}
	out := *sc
	own := &out.Sampling
	own.Temperature, own.TopP, own.Seed = cmp.Or(own.Temperature, with.Temperature), cmp.Or(own.TopP, with.TopP), cmp.Or(own.Seed, with.Seed)
	return &out
}

// A state is the initial state of the workspace of a run. The values are JSON objects.
type state struct {
	Facts json.RawMessage `json:"facts,omitempty"`
	Draft json.RawMessage `json:"draft,omitempty"`
	UI    json.RawMessage `json:"ui_state,omitempty"`
}

//go:embed state.yaml injection.yaml faults.yaml retail.yaml airline.yaml skills.yaml
var files embed.FS

// Builtin returns the suite "state": eight scenarios in which a model reads and changes a workspace with state_get and state_patch. Its
// presets are default, simple, typical, extreme and all.
func Builtin() *Suite { return shipped("state") }

// Injection returns the suite "injection": results, documents, descriptions and arguments whose texts tell the model to do something
// forbidden. It measures Lathe: the forbidden effect must not occur, whatever the model does.
func Injection() *Suite { return shipped("injection") }

// Faults returns the suite "faults": tools that misbehave. It measures Lathe: each call must be answered exactly once, with the correct
// code.
func Faults() *Suite { return shipped("faults") }

func shipped(name string) *Suite {
	var s *Suite
	b, err := files.ReadFile(name + ".yaml")
	if err == nil {
		s, err = Parse(name, b)
	}
	if err != nil {
		panic("eval: a suite that comes with Lathe: " + err.Error())
	}
	return s
}

// Retail returns the suite "retail": conversations with a shop's customer service, in which the model changes orders within the shop's
// policy.
func Retail() *Suite { return shipped("retail") }

// Airline returns the suite "airline": conversations with an airline's customer service.
func Airline() *Suite { return shipped("airline") }

// Skills returns the suite "skills", which tests individual skills by category: long tool lists, parallel calls, requests that no tool
// fits, tool errors, instructions in results, long arguments, and texts and numbers that must be passed on unchanged.
func Skills() *Suite { return shipped("skills") }

// Select returns the scenarios of a preset, in the order of the suite. The preset "" is "default" if the suite has a preset of that name,
// otherwise all scenarios. An unknown name is an error that lists the presets.
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

// Find returns the scenarios with these ids, in the order of the suite. An unknown id is an error.
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

// usesState reports whether the run has the tools of the workspace.
func (sc *Scenario) usesState() bool {
	return sc.Gold == nil && (len(sc.Tools) == 0 || sc.State.Facts != nil || sc.State.Draft != nil || sc.State.UI != nil)
}

// conversational returns the settings of a scenario with gold actions: in a conversation an answer without calls is valid, and a refused
// call is not necessarily a failure.
func (sc *Scenario) conversational() []Setting {
	if sc.Gold == nil {
		return nil
	}
	return []Setting{{Key: "tool_use_mode", Value: string(lathe.ModeRelaxed)}}
}

// stateTools are the names of the tools of the workspace.
var stateTools = []string{"state_get", "state_patch", "facts_commit"}

// toolNames returns the names of all tools of a run, including hidden ones.
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

// untold returns the texts that the model must not receive.
func (sc *Scenario) untold() []string {
	var texts []string
	for i := range sc.Asserts {
		if sc.Asserts[i].Kind == assertUntold {
			texts = append(texts, sc.Asserts[i].Text)
		}
	}
	return texts
}
