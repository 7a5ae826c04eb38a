package eval

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/tool"
)

// parsedSteps reads the steps of one tool, whose schema has the parameters id, n, v and o.
func parsedSteps(t *testing.T, text string) []step {
	t.Helper()
	s, err := Parse("s.yaml", []byte("scenarios:\n  - id: a\n    user: hi\n    gold: [{say: hi}]\n    tools:\n"+
		"      - name: f\n        schema: {properties: {id: {}, n: {}, v: {}, o: {}}}\n        steps: ["+text+"]\n"))
	if err != nil {
		t.Fatal(err)
	}
	return s.Scenarios[0].Tools[0].Steps
}

func TestSteps(t *testing.T) {
	t.Parallel()
	const data = `{"a":{"x/y":{"n":1.5,"tags":["p","q"],"of":"k"},"z":{"n":2,"of":"k","big":9007199254740993}},"list":[{"k":1},{"k":2,"m":3}],"empty":{}}`
	for name, c := range map[string]struct {
		steps, args string
		result      string // "" where the call is refused
		refused     string // the message
		want        string // of the database; "" where it stays
	}{
		"get":                         {`{get: "/a/{id}"}`, `{"id":"x/y"}`, `{"n":1.5,"of":"k","tags":["p","q"]}`, "", ""},
		"get keeps digits":            {`{get: /a/z/big}`, `{}`, `9007199254740993`, "", ""},
		"get nothing":                 {`{get: "/a/{id}"}`, `{"id":"b"}`, "", "there is nothing at /a/b", ""},
		"get nothing, in own words":   {`{get: "/a/{id}", else: no such thing}`, `{"id":"b"}`, "", "no such thing", ""},
		"a pointer wants an argument": {`{get: "/a/{id}"}`, `{}`, "", "id wants a text or a number", ""},
		"an argument is one token":    {`{get: "/a/{id}"}`, `{"id":"z/n"}`, "", "there is nothing at /a/z~1n", ""},
		"an object is no token":       {`{get: "/a/{id}"}`, `{"id":{}}`, "", "id wants a text or a number", ""},
		"a number is a token":         {`{get: "/list/{n}"}`, `{"n":1}`, `{"k":2,"m":3}`, "", ""},
		"bound":                       {`{get: "/a/z", as: it}, {return: {n: "{it/n}", all: "{it}", text: "n is {it/n}"}}`, `{}`, `{"n":2,"all":{"big":9007199254740993,"n":2,"of":"k"},"text":"n is 2"}`, "", ""},
		"list":                        {`{list: /a, where: {of: k, n: "{n}"}}`, `{"n":2.0}`, `[{"big":9007199254740993,"n":2,"of":"k"}]`, "", ""},
		"list without the argument":   {`{list: /list, where: {k: "{n}"}}`, `{}`, `[{"k":1},{"k":2,"m":3}]`, "", ""},
		"list of none":                {`{list: /list, where: {k: 9}}`, `{}`, `[]`, "", ""},
		"set":                         {`{set: "/empty/{id}", value: {of: "{v}", x: [1, "{n}"]}}`, `{"id":"é","v":{"b":true},"n":null}`, `{"done":true}`, "", `{"é":{"of":{"b":true},"x":[1,null]}}`},
		"set without the argument":    {`{set: /empty/x, value: "{v}"}, {set: /empty/y, value: {of: "{v}"}}`, `{}`, `{"done":true}`, "", `{"y":{}}`},
		"set a copy":                  {`{set: /empty/x, value: {from: "/list/{n}"}}`, `{"n":0}`, `{"done":true}`, "", `{"x":{"k":1}}`},
		"set a copy of nothing":       {`{set: /empty/x, value: {from: /b}}`, `{}`, "", "there is nothing at /b", ""},
		"append":                      {`{append: /empty/x, value: 1}, {append: /empty/x, value: 2}`, `{}`, `{"done":true}`, "", `{"x":[1,2]}`},
		"append to no array":          {`{append: /a/z/n, value: 1, else: no}`, `{}`, "", "no", ""},
		"delete":                      {`{set: /empty/x, value: 1}, {set: /empty/y, value: 1}, {delete: /empty/x}`, `{}`, `{"done":true}`, "", `{"y":1}`},
		"delete nothing":              {`{delete: /empty/x}`, `{}`, "", "there is nothing at /empty/x", ""},
		"sums":                        {`{set: /empty/x, value: 0.1}, {add: /empty/x, value: 0.2}, {subtract: /empty/x, value: "{n}"}`, `{"n":9007199254740993}`, `{"done":true}`, "", `{"x":-9007199254740992.7}`},
		"sum of no number":            {`{add: /a/z/of, value: 1}`, `{}`, "", "there is no number at /a/z/of", ""},
		"sum of nothing":              {`{add: /empty/x, value: 1}`, `{}`, "", "there is no number at /empty/x", ""},
		"sum of an exponent":          {`{set: /empty/x, value: 1}, {add: /empty/x, value: "{n}"}`, `{"n":1e300}`, "", "there is no number at /empty/x", ""},
		"later steps see earlier":     {`{set: /empty/x, value: 1}, {add: /empty/x, value: 1}, {check: /empty/x, equals: 2}, {get: /empty/x}`, `{}`, `2`, "", `{"x":2}`},
		"all or nothing":              {`{set: /empty/x, value: 1}, {check: /empty/x, equals: 2, else: no}`, `{}`, "", "no", ""},
		"equals":                      {`{check: /a/z/n, equals: "{n}"}`, `{"n":2.0}`, `{"done":true}`, "", ""},
		"equals not":                  {`{check: /a/z/n, equals: 3}`, `{}`, "", "the value at /a/z/n does not allow this", ""},
		"in":                          {`{check: /a/z/of, in: [j, k]}`, `{}`, `{"done":true}`, "", ""},
		"in not":                      {`{check: /a/z/of, in: [j]}`, `{}`, "", "the value at /a/z/of does not allow this", ""},
		"has":                         {`{check: /a/x~1y/tags, has: [q, p]}, {check: /a, has: z}`, `{}`, `{"done":true}`, "", ""},
		"has not all":                 {`{check: /a/x~1y/tags, has: [q, r], else: r}`, `{}`, "", "r", ""},
		"bounds":                      {`{check: /a/z/n, at_least: 2}, {check: /a/z/n, at_most: 2.0}`, `{}`, `{"done":true}`, "", ""},
		"too little":                  {`{check: /a/z/n, at_least: "{n}"}`, `{"n":2.1}`, "", "the value at /a/z/n does not allow this", ""},
		"too much":                    {`{check: /a/z/n, at_most: 1}`, `{}`, "", "the value at /a/z/n does not allow this", ""},
		"a bound of no number":        {`{check: /a/z/of, at_most: 1}`, `{}`, "", "the value at /a/z/of does not allow this", ""},
		"missing":                     {`{check: /b, missing: true}`, `{}`, `{"done":true}`, "", ""},
		"not missing":                 {`{check: /a, missing: true}`, `{}`, "", "there is a value at /a", ""},
		"a check of an absent value":  {`{check: /a/z/n, equals: "{n}"}`, `{}`, `{"done":true}`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := newDatabase(json.RawMessage(data))
			if err != nil {
				t.Fatal(err)
			}
			got, err := d.call(parsedSteps(t, c.steps), json.RawMessage(c.args))
			var refused *tool.Failure
			switch {
			case c.result != "" && (err != nil || !rawjson.Equal(got, []byte(c.result))):
				t.Errorf("%s, %v\nwant %s", got, err, c.result)
			case c.result == "" && (!errors.As(err, &refused) || refused.Message != c.refused || refused.Code != lathe.CodeInvalidArguments):
				t.Errorf("%s, %v\nwant the refusal %q", got, refused, c.refused)
			}
			want := data
			if c.want != "" {
				want = strings.Replace(data, `"empty":{}`, `"empty":`+c.want, 1)
			}
			if after, err := contents(d.ws); err != nil || !rawjson.Equal(after, []byte(want)) {
				t.Errorf("the database is %s, %v\nwant %s", after, err, want)
			}
		})
	}
}

// Steps that copy what they have copied are refused before the database fills the memory.
func TestCopiesOfADatabaseAreBounded(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{"copies": `[{from: /a}, {from: /a}]`, "bound": `["{v}", "{v}"]`} {
		d, err := newDatabase(json.RawMessage(`{"a":"` + strings.Repeat("x", 1<<10) + `"}`))
		if err != nil {
			t.Fatal(err)
		}
		step := `{get: /a, as: v}, {set: /a, value: ` + value + `}, `
		_, err = d.call(parsedSteps(t, strings.TrimSuffix(strings.Repeat(step, 16), ", ")), json.RawMessage(`{}`))
		var f *tool.Failure
		if !errors.As(err, &f) || !strings.Contains(f.Message, "more than 4194304 bytes") {
			t.Errorf("%s: %v", name, err)
		}
		if raw, err := contents(d.ws); err != nil || len(raw) > 2<<10 {
			t.Errorf("%s: the database has %d bytes, %v", name, len(raw), err)
		}
	}
}

// Calls that are made at the same time do not lose each other's changes.
func TestCallsOfADatabaseAreOneAfterTheOther(t *testing.T) {
	t.Parallel()
	d, err := newDatabase(json.RawMessage(`{"n":0}`))
	if err != nil {
		t.Fatal(err)
	}
	steps := parsedSteps(t, `{add: /n, value: 1}`)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := d.call(steps, json.RawMessage(`{}`)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if raw, err := contents(d.ws); err != nil || string(raw) != `{"n":20}` {
		t.Errorf("%s, %v", raw, err)
	}
}

func TestDifferencesNameWhatDiffers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ want, got, words string }{
		{`{"a":1}`, `{"a":1.0}`, ""},
		{`{"a":{"b/c":1,"d":2}}`, `{"a":{"b/c":2,"d":2}}`, "/a/b~1c 2 and not 1"},
		{`{"a":[1,2]}`, `{"a":[2,1]}`, "/a [2,1] and not [1,2]"},
		{`{"a":1}`, `{"b":1}`, "/a absent and not 1, /b 1 and not absent"},
		{`{"a":1,"b":1,"c":1,"d":1}`, `{}`, "/a absent and not 1, /b absent and not 1, /c absent and not 1"},
	} {
		check := checkGold(json.RawMessage(c.want), json.RawMessage(c.got))
		if check.OK != (c.words == "") || check.Got != c.words {
			t.Errorf("%s against %s: %+v", c.got, c.want, check)
		}
	}
}

// What cannot be run is refused with its line.
func TestDatabasesAreChecked(t *testing.T) {
	t.Parallel()
	head := "scenarios:\n  - id: a\n    user: hi\n"
	gold := head + "    gold: [{say: hi}]\n"
	tools := gold + "    tools:\n      - name: f\n        steps: "
	for in, want := range map[string]string{
		head + "    gold: [{}]":                                                                               "s.yaml:4: a gold action says something or calls a tool",
		head + "    gold: [{f: 1}]":                                                                           "s.yaml:4: f wants the arguments of a call, or a list of such",
		head + "    gold: [{f: {}}]":                                                                          "s.yaml:4: scenario a: gold action 1, f, is no tool of the scenario",
		gold + "    state: {draft: {}}":                                                                       "s.yaml:5: scenario a has gold actions: they go with database, not with state",
		gold + "    database: [1]":                                                                            "s.yaml:5: database wants a mapping",
		gold + "    database: {a: {repeat: x, times: 300000}}":                                                "s.yaml:5: a database has at most 262144 bytes",
		gold + "    user_simulator: {max_turns: 3}":                                                           "s.yaml:5: user_simulator wants replies, instructions, or both",
		gold + "    user_simulator: {replies: [{say: ' '}]}":                                                  "s.yaml:5: a reply has a text to say",
		gold + "    user_simulator: {replies: [{say: x, when: '('}]}":                                         "s.yaml:5: when is no regular expression",
		gold + "    user_simulator: {instructions: x, max_turns: 101}":                                        "s.yaml:5: max_turns is at most 100",
		head + "    user_simulator: {instructions: x}\n    assert: [{text: x}]":                               "s.yaml:2: scenario a has a user_simulator or tools with steps, and no gold actions to compare with",
		head + "    tools: [{name: f, steps: [{return: 1}]}]\n    assert: [{text: x}]":                        "s.yaml:2: scenario a has a user_simulator or tools with steps, and no gold actions to compare with",
		head + "    tools: [{name: f, steps: [{check: /x, equals: 1}]}]\n    gold: [{f: {}}]":                 "s.yaml:5: scenario a: gold action 1, f, fails: the value at /x does not allow this",
		head + "    tools: [{name: f, schema: {type: object, required: [x]}}]\n    gold: [{say: a}, {f: {}}]": "s.yaml:5: scenario a: gold action 2, f, has arguments that are not of its schema: missing \"x\"",
		tools + "[1]":                   "s.yaml:7: a step wants a mapping",
		tools + "[{put: /a}]":           `s.yaml:7: a step begins with get, list, check, set, append, add, subtract, delete, return, not with "put"`,
		tools + "[{get: a}]":            "s.yaml:7: a JSON pointer starts with /",
		tools + "[{get: /a, value: 1}]": `s.yaml:7: unknown key "value": the step get has get, as, else`,
		tools + "[{get: '/a/{id}'}]":    "s.yaml:6: a step of f uses {id}, which is no parameter of its schema and bound by no earlier step",
		tools + "[{set: /a, value: '{it}'}, {get: /a, as: it}]":                                 "s.yaml:6: a step of f uses {it}, which is no parameter of its schema and bound by no earlier step",
		tools + "[{check: /a}]":                                                                 "s.yaml:7: check wants one of equals, in, has, at_least, at_most, missing",
		tools + "[{check: /a, in: [1], has: 1}]":                                                "s.yaml:7: a check has one of equals, in, has, at_least, at_most, missing",
		tools + "[{check: /a, missing: false}]":                                                 "s.yaml:7: missing wants true",
		tools + "[{list: /a, where: [1]}]":                                                      "s.yaml:7: where wants a mapping",
		tools + "[{set: /a}]":                                                                   "s.yaml:7: set wants a value",
		tools + "[{set: '', value: 1}]":                                                         "s.yaml:7: set wants the pointer of a value within the database",
		tools + "[" + strings.Repeat("{return: 1}, ", 33) + "]":                                 "s.yaml:7: a tool has at most 32 steps",
		head + "    tools: [{name: f}]\n    gold: [{f: [" + strings.Repeat("{}, ", 101) + "]}]": "s.yaml:5: a scenario has at most 100 gold calls",
		"generated_tools: {verbs: [a]}\n" + gold:                                                "s.yaml:1: generated_tools wants verbs and nouns, and makes at most 512 tools",
		"generated_tools: {verbs: [a], nouns: ['']}\n" + gold:                                   "s.yaml:1: generated_tools wants verbs and nouns, and makes at most 512 tools",
		"generated_tools: {verbs: [a], nouns: ['ä b']}\n" + gold:                                "",
	} {
		_, err := Parse("s.yaml", []byte(in))
		var syntax *syntaxError
		if !errors.As(err, &syntax) || want != "" && err.Error() != want {
			t.Errorf("%q:\n got %v\nwant %s", in, err, want)
		}
	}
}
