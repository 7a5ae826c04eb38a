package eval

import (
	"errors"
	"slices"
	"testing"
)

func TestBuiltinHasTheEightScenarios(t *testing.T) {
	t.Parallel()
	s := Builtin()
	want := map[string][]string{
		"":        {"happy_path", "missing_workspace_id", "type_error_recovery", "long_arguments_guard", "chat_only"},
		"simple":  {"happy_path", "chat_only"},
		"typical": {"happy_path", "missing_workspace_id", "type_error_recovery", "long_arguments_guard", "chat_only"},
		"extreme": {"happy_path", "partial_success_failure", "missing_workspace_id", "type_error_recovery", "long_arguments_guard", "tool_output_truncation", "chat_only"},
		"all": {"happy_path", "partial_success_failure", "missing_workspace_id", "type_error_recovery", "duplicate_tool_calls",
			"long_arguments_guard", "tool_output_truncation", "chat_only"},
	}
	for preset, ids := range want {
		got, err := s.Select(preset)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.EqualFunc(got, ids, func(sc *Scenario, id string) bool { return sc.ID == id }) {
			t.Errorf("preset %q: got %d scenarios, want %v", preset, len(got), ids)
		}
	}
	if _, err := s.Select("nothing"); err == nil {
		t.Error("a preset that is not there is no error")
	}
}

func TestParseNamesFileLineAndFault(t *testing.T) {
	t.Parallel()
	ok := "scenarios:\n  - id: a\n    user: hi\n    assert: [{text: x}]\n"
	if _, err := Parse("s.yaml", []byte(ok)); err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		"":                                "s.yaml: the file is empty",
		"scenarios: [":                    "s.yaml:1: not YAML: did not find expected node content",
		"a: 1":                            `s.yaml:1: unknown key "a": a suite has name, settings, measures, models, system, database, tools, generated_tools, policy, presets, scenarios`,
		"name: x":                         "s.yaml:1: a suite has scenarios",
		ok + "---\n{}":                    "s.yaml:5: a second document: the file has one",
		ok + "name: a\nname: b":           "s.yaml:6: name stands twice",
		ok + "presets:\n  p: [a, b]":      `s.yaml:6: suite s.yaml has no scenario "b", it has a`,
		ok + "presets: {all: [a]}":        "s.yaml:5: the preset all is all scenarios and cannot be another",
		ok + "settings:\n  max_turns: 3":  "s.yaml:6: tool_calling.max_turns: unknown key, it is called max_iterations here",
		ok + "settings:\n  repair: maybe": `s.yaml:6: tool_calling.repair: unknown value "maybe" (safe, off)`,
		ok + "  - id: a\n    user: hi\n    assert: [{text: x}]":                                          "s.yaml:5: scenario a stands twice",
		"scenarios:\n  - id: a b\n    user: hi\n    assert: [{text: x}]":                                 "s.yaml:2: a scenario has an id of letters, digits, _ . and -, at most 64",
		"scenarios:\n  - id: a\n    user: hi":                                                            "s.yaml:2: scenario a asserts nothing, so no run of it could fail",
		"scenarios:\n  - id: a\n    assert: [{text: x}]":                                                 "s.yaml:2: scenario a has no user text",
		"scenarios:\n  - id: a\n    user: hi\n    assert:\n      - {guess: x}":                           `s.yaml:5: an assert begins with state, called, order, arguments, guard, failed, not_asked, together, text, said, database, executed, refused or untold, not with "guess"`,
		"scenarios:\n  - id: a\n    user: hi\n    assert:\n      - {text: x, match: near}":               "s.yaml:5: match is exact or tolerant",
		"scenarios:\n  - id: a\n    user: hi\n    assert:\n      - {state: draft, equals: 1}":            "s.yaml:5: a JSON pointer starts with /",
		"scenarios:\n  - id: a\n    user: hi\n    assert:\n      - {state: /draft}":                      "s.yaml:5: state wants a JSON pointer and equals",
		"scenarios:\n  - id: a\n    user: hi\n    assert:\n      - {arguments: f, pointer: /x}":          "s.yaml:5: arguments wants a pointer and one of equals and missing",
		"scenarios:\n  - id: a\n    user: hi\n    assert:\n      - {called: f, at_least: 2, at_most: 1}": "s.yaml:5: at_most is below at_least",
		"scenarios:\n  - id: a\n    user: hi\n    assert:\n      - {order: [f]}":                         "s.yaml:5: order wants two tools or more",
		"measures: me\n" + ok:                                                                             "s.yaml:1: measures is models or lathe",
		"tools: [{name: a b}]\n" + ok:                                                                     `s.yaml:1: this tool cannot be: the name "a b" is not 1 to 64 of the characters a-z, A-Z, 0-9, _ and -`,
		"tools: [{name: f}, {name: f}]\n" + ok:                                                            "s.yaml:1: the tool f stands twice",
		"tools: [{name: f, effect: maybe}]\n" + ok:                                                        "s.yaml:1: effect is read_only, idempotent or writes",
		"tools: [{name: f, timeout: soon}]\n" + ok:                                                        "s.yaml:1: timeout wants a time such as 50ms",
		"tools: [{name: f, answers: [{}]}]\n" + ok:                                                        "s.yaml:1: an answer has one of value, text, raw, base64, size, error, echo, hang, panic and none",
		"tools: [{name: f, answers: [{text: a, echo: true}]}]\n" + ok:                                     "s.yaml:1: an answer has one of value, text, raw, base64, size, error, echo, hang, panic and none",
		"tools: [{name: f, answers: [{hang: false}]}]\n" + ok:                                             "s.yaml:1: hang wants true",
		"tools: [{name: f, answers: [{size: 1}]}]\n" + ok:                                                 "s.yaml:1: size is from 2 to 67108864",
		"tools: [{name: f, answers: [{base64: '!'}]}]\n" + ok:                                             "s.yaml:1: base64 wants base64",
		"tools: [{name: f, answers: [{text: a, times: 0}]}]\n" + ok:                                       "s.yaml:1: times is from 1 to 1000",
		"tools: [{name: f}]\npolicy: {allow: [g]}\n" + ok:                                                 "s.yaml:4: the policy of scenario a names g, which is no tool of it",
		"tools: [{name: f}]\n" + ok + "    answers: {g: []}":                                              "s.yaml:6: answers of g, which is no tool of the suite",
		"scenarios:\n  - id: a\n    user: hi\n    assert: [{executed: f}]":                                "s.yaml:2: scenario a counts the executions of f, which is no tool of the suite",
		"scenarios:\n  - id: a\n    user: hi\n    assert: [{refused: f}]":                                 "s.yaml:2: scenario a asserts on f, which is no tool of it",
		"tools: [{name: f}]\nscenarios:\n  - id: a\n    user: hi\n    assert: [{executed: f, equals: 1}]": "s.yaml:5: pointer and equals belong together",
		"scenarios:\n  - id: a\n    user: hi\n    assert: [{untold: ''}]":                                 "s.yaml:4: untold wants a text",
		"scenarios:\n  - id: &x a\n    user: hi":                                                          "s.yaml:2: anchors and aliases are not read here",
		"scenarios:\n  - id: a\n    user: hi\n    state: {draft: 1}\n    assert: [{text: x}]":             "s.yaml:4: draft wants a mapping",
		"scenarios:\n  - id: a\n    user: hi\n    sampling: {seed: x}\n    assert: [{text: x}]":           "s.yaml:4: sampling wants numbers",
	} {
		_, err := Parse("s.yaml", []byte(in))
		var syntax *syntaxError
		if !errors.As(err, &syntax) || err.Error() != want {
			t.Errorf("%q:\n got %v\nwant %s", in, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"state", "injection", "faults", "retail", "airline", "skills"} {
		b, err := files.ReadFile(name + ".yaml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte("scenarios:\n  - id: a\n    user: hi\n    state: {draft: {x: {repeat: y, times: 3}}}\n    assert: [{called: f, at_most: 0}]\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Parse("f", b)
		var syntax *syntaxError
		if err != nil && !errors.As(err, &syntax) {
			t.Fatalf("%v is no SyntaxError", err)
		}
		if err == nil && len(s.Scenarios) == 0 {
			t.Fatal("a suite without scenarios")
		}
	})
}

func TestScenariosOverlayToolsOfTheSuite(t *testing.T) {
	t.Parallel()
	s, err := Parse("s.yaml", []byte(`
measures: lathe
models: [a, b]
tools:
  - {name: f, answers: [{text: one}]}
  - {name: g}
policy: {allow: [f]}
scenarios:
  - {id: plain, user: hi, assert: [{executed: f}]}
  - id: own
    user: hi
    answers: {f: [{error: timeout, times: 2}, {value: {x: 1}}]}
    tools: [{name: g, hidden: true}, {name: h, timeout: 1s, show: [x]}]
    policy: {ask: [h], approve: [{tool: h, arguments: {x: 1}}]}
    assert: [{executed: h, at_most: 0}]
`))
	if err != nil {
		t.Fatal(err)
	}
	plain, own := s.Scenarios[0], s.Scenarios[1]
	if !s.MeasuresLathe || len(s.Models) != 2 || len(plain.Tools) != 2 || plain.usesState() || len(plain.Tools[0].Answers) != 1 || plain.Guard.Allow[0] != "f" {
		t.Errorf("%+v", plain)
	}
	if len(own.Tools) != 3 || len(own.Tools[0].Answers) != 3 || !own.Tools[1].Hidden || plain.Tools[1].Hidden || own.Guard.Allow != nil || string(own.Guard.Approve[0].Arguments) != `{"x":1}` {
		t.Errorf("%+v", own)
	}
}
