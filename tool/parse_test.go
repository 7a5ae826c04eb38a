package tool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

func TestParse(t *testing.T) {
	t.Parallel()
	const fence = "```"
	for _, tt := range []struct {
		name, args string
		want       string // what the tool gets, "" for invalid_json
		repaired   bool
	}{
		{"empty", "", "{}", false},
		{"blank", " \n\t ", "{}", false},
		{"null", " null ", "{}", false},
		{"object", `{"a":1}`, `{"a":1}`, false},
		{"digits stay", `{"a":12345678901234567890.10}`, `{"a":12345678901234567890.10}`, false},
		{"white space inside stays", "\n{ \"a\" : 1 }\n", `{ "a" : 1 }`, false},
		{"fenced", fence + "json\n{\"a\":1}\n" + fence, `{"a":1}`, true},
		{"fenced without a word", " " + fence + "\n{\"a\":1}" + fence + "\n", `{"a":1}`, true},
		{"fence not closed", fence + "json\n{\"a\":1}", "", false},
		{"fence of something else", fence + "json\n[1]\n" + fence, "", false},
		{"fence of nothing", fence + fence, "", false},
		{"text around the fence", "Here: " + fence + "json\n{}\n" + fence, "", false},
		{"double-encoded", `"{\"a\":\"\\u00e9\"}"`, `{"a":"\u00e9"}`, true},
		{"double-encoded nothing", `""`, "{}", true},
		{"double-encoded null", `"null"`, "{}", true},
		{"encoded three times", `"\"{}\""`, "", false},
		{"a string", `"x"`, "", false},
		{"an array", `[{"a":1}]`, "", false},
		{"a number", `1`, "", false},
		{"a string that does not end", `"`, "", false},
		{"trailing data", `{} {}`, "", false},
		{"no value", `{"a":}`, "", false},
		{"single quotes", `{'a':1}`, "", false},
		{"a comment", `{"a":1} // x`, "", false},
		{"bom", "\ufeff{}", "{}", true},
		{"control_character", "{\"a\":\"one\ntwo\tx\"}", `{"a":"one\ntwo\tx"}`, true},
		{"trailing_comma", `{"a":[1,],}`, `{"a":[1]}`, true},
		{"two commas", `{"a":1,,}`, "", false},
		{"duplicate keys", `{"a":1,"a":2}`, "", false},
		{"duplicate keys, deep", `{"b":[{"a":1,"\u0061":2}]}`, "", false},
		{"not UTF-8", "{\"a\":\"\xff\"}", "", false},
		{"lone surrogate", `{"a":"\ud800"}`, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, repair := range []lathe.Repair{"", lathe.RepairOff} {
				got := ""
				w := open(t, &tool.Options{Policy: policy.AllowAll(), Settings: lathe.Settings{Repair: repair}},
					reader("t", func(_ context.Context, args json.RawMessage) (*lathe.Output, error) {
						got = string(args)
						return &lathe.Output{Data: json.RawMessage(`1`)}, nil
					}))
				want := tt.want
				if repair == lathe.RepairOff && tt.repaired {
					want = ""
				}
				res, rec, out := one(t, w, call("t", tt.args))
				if got != want || (res.Code == lathe.CodeInvalidJSON) != (want == "") {
					t.Errorf("repair %q: the tool got %q, code %q; want %q", repair, got, res.Code, want)
				}
				repaired := tt.repaired && want != ""
				kind := event.Repair("")
				if repaired {
					kind = event.RepairJSONString
					switch {
					case strings.HasPrefix(tt.name, "fence"):
						kind = event.RepairCodeFence
					case strings.Contains("bom control_character trailing_comma", tt.name):
						kind = event.Repair(tt.name)
					}
				}
				if res := find[*event.ToolCallResult](t, rec); res.Repaired != repaired || res.Repair != kind || out.Calls[0].Repaired != repaired {
					t.Errorf("repair %q: repaired is %t %q, want %q", repair, res.Repaired, res.Repair, kind)
				}
				if p := find[*event.ToolCallProposed](t, rec); p.RawArgs != tt.args || p.ArgsBytes != len(tt.args) {
					t.Errorf("the argument text is shown as %q", p.RawArgs)
				}
			}
		})
	}
}

// The verdicts on hostile arguments, from the shared vectors.
func TestHostileArguments(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(testdata.Own(t, "internal", "rawjson", "testdata", "hostile.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Literal   []struct{ Name, JSON, Expect string } `json:"literal"`
		Generated []struct{ Name, Make, Limit string }  `json:"generated"`
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	try := func(args string) (res lathe.ToolResult, limit string, got string) {
		w := open(t, nil, reader("t", func(_ context.Context, args json.RawMessage) (*lathe.Output, error) {
			got = string(args)
			return &lathe.Output{Data: json.RawMessage(`1`)}, nil
		}))
		r, rec, _ := one(t, w, call("t", args))
		return r, find[*event.ToolCallResult](t, rec).Limit, got
	}
	reject := func(args string) string {
		if res, _, _ := try(args); res.Code != lathe.CodeInvalidJSON {
			return fmt.Sprintf("code %q, want invalid_json", res.Code)
		}
		return ""
	}
	keep := func(want string) func(string) string {
		return func(args string) string {
			if res, _, got := try(args); res.IsError || got != want {
				return fmt.Sprintf("the tool got %q, code %q, want %q", got, res.Code, want)
			}
			return ""
		}
	}
	limited := func(args string, code lathe.Code, key string) string {
		if res, limit, _ := try(args); res.Code != code || limit != key {
			return fmt.Sprintf("code %q limit %q, want %q %q", res.Code, limit, code, key)
		}
		return ""
	}
	verdicts := map[string]func(json string) string{
		"case-folded duplicate": func(args string) string {
			if res, _, got := try(args); res.Code != lathe.CodeInvalidArguments || got != "" {
				return fmt.Sprintf("the tool got %q, code %q", got, res.Code)
			}
			return ""
		},
		"escaped duplicate": reject,
		"lone surrogate":    reject,
		// It is JSON; the validator's limit on numbers refuses it.
		"huge exponent": func(args string) string {
			if res, _, got := try(args); res.Code != lathe.CodeInvalidArguments || got != "" {
				return fmt.Sprintf("code %q", res.Code)
			}
			return ""
		},
		"trailing garbage": reject,
		"empty arguments":  keep("{}"),
		"double-encoded":   keep(`{"a":1}`),
		"proto keys":       keep(`{"__proto__":{"x":1},"constructor":1}`),
		"NaN":              reject,
		"raw control char": keep(`{"a":"\n"}`), // repair mends what has one reading
		"deep arrays": func(string) string {
			return limited(`{"a":`+strings.Repeat("[", 100_000), lathe.CodeInvalidJSON, "max_json_depth")
		},
		"many keys": func(string) string {
			var b strings.Builder
			for i := range 15_000 {
				fmt.Fprintf(&b, `,"k%d":0`, i)
			}
			return limited("{"+b.String()[1:]+"}", lathe.CodeInvalidJSON, "max_json_keys")
		},
		"long string": func(string) string {
			return limited(`{"a":"`+strings.Repeat("x", 64<<20)+`"}`, lathe.CodeArgumentsTooLarge, "max_tool_args_bytes")
		},
		"arguments drip": func(string) string {
			return limited(strings.Repeat("x", 1_000_000), lathe.CodeArgumentsTooLarge, "max_tool_args_bytes")
		},
		"regex bomb": func(string) string {
			f := reader("t", echo)
			f.spec.Schema = json.RawMessage(`{"type":"object","properties":{"a":{"pattern":"^(a+)+$"}}}`)
			if res, _, _ := one(t, open(t, nil, f), call("t", `{"a":"`+strings.Repeat("a", 40)+`!"}`)); res.Code != lathe.CodeInvalidArguments {
				return fmt.Sprintf("code %q", res.Code)
			}
			return ""
		},
		"$ref loop": func(string) string {
			f := reader("t", echo)
			f.spec.Schema = json.RawMessage(`{"$ref":"#"}`)
			set, err := tool.NewSet(f)
			if err != nil {
				return "" // detected at registration
			}
			runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.AllowAll()})
			if err != nil {
				t.Fatal(err)
			}
			w := runner.Begin(nil, nil)
			if res, _, _ := one(t, w, call("t", "{}")); res.Code != lathe.CodeInvalidArguments && res.Code != "" {
				return fmt.Sprintf("code %q", res.Code)
			}
			return ""
		},
	}
	seen := map[string]bool{}
	for _, c := range file.Literal {
		seen[c.Name] = true
		if check := verdicts[c.Name]; check == nil {
			t.Errorf("no verdict for %q (%s)", c.Name, c.Expect)
		} else if why := check(c.JSON); why != "" {
			t.Errorf("%s: %s", c.Name, why)
		}
	}
	for _, c := range file.Generated {
		seen[c.Name] = true
		if check := verdicts[c.Name]; check == nil {
			t.Errorf("no verdict for %q (%s)", c.Name, c.Limit)
		} else if why := check(""); why != "" {
			t.Errorf("%s: %s", c.Name, why)
		}
	}
	for name := range verdicts {
		if !seen[name] {
			t.Errorf("the vectors have no %q", name)
		}
	}
}

// Numbers that are legal JSON and that nothing can compute with must not stall the validator.
func TestHugeNumbersAreCheap(t *testing.T) {
	t.Parallel()
	f := reader("t", returns(`1`))
	f.spec.Schema = json.RawMessage(`{"type":"object","properties":{"a":{"type":"number","minimum":1,"multipleOf":0.01},"b":{"enum":[1,2]}}}`)
	for _, args := range []string{`{"a":1e999999}`, `{"a":1e-999999999}`, `{"b":1e999999999999}`, `{"a":` + strings.Repeat("9", 150_000) + `}`} {
		one(t, open(t, nil, f), call("t", args)) // one that stalls does not return within the time of the tests
	}
}

// FuzzArguments: whatever the text, the tool gets one strict JSON object or nothing.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{"", "null", `{"a":1}`, "```json\n{}\n```", `"{\"a\":1}"`, `{"a":1,"a":2}`, "[", "\xff", `"\ud800"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, args string) {
		got := ""
		w := open(t, nil, reader("t", func(_ context.Context, a json.RawMessage) (*lathe.Output, error) {
			got = string(a)
			return &lathe.Output{Data: json.RawMessage(`1`)}, nil
		}))
		res, _, _ := one(t, w, call("t", args))
		if res.Code != "" && res.Code != lathe.CodeInvalidJSON && res.Code != lathe.CodeArgumentsTooLarge {
			t.Errorf("%q: code %q", args, res.Code)
		}
		if (got == "") == (res.Code == "") {
			t.Errorf("%q: code %q and the tool got %q", args, res.Code, got)
		}
		if got != "" && (!json.Valid([]byte(got)) || got[0] != '{') {
			t.Errorf("%q: the tool got %q", args, got)
		}
	})
}

// A model reads the beginning of native arguments that are no JSON: its history has {} in their place. Of a call in text it has the text.
func TestBrokenArgumentsAreQuoted(t *testing.T) {
	t.Parallel()
	for dialect, want := range map[string]any{"": `{"a": "é` + strings.Repeat("x", 191), "hermes": nil} {
		c := call("t", `{"a": "é`+strings.Repeat("x", 500))
		c.Dialect = dialect
		res, _, _ := one(t, open(t, &tool.Options{Policy: policy.AllowAll()}, reader("t", echo)), c)
		if got := errorOf(t, res)["written"]; res.Code != lathe.CodeInvalidJSON || got != want {
			t.Errorf("%q: %s %v, want %v", dialect, res.Code, got, want)
		}
	}
}
