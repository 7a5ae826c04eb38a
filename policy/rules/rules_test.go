package rules_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/policy/rules"
)

func call(name string, effect lathe.Effect, args string) *lathe.CallInfo {
	return &lathe.CallInfo{Run: &lathe.RunInfo{Principal: "ci", Labels: map[string]string{"env": "prod"}}, Turn: 2, Seq: 3,
		Call: &lathe.ToolCall{Name: name, Arguments: args}, Tool: &lathe.ToolSpec{Name: name, Effect: effect}, Args: json.RawMessage(args)}
}

func compile(t testing.TB, list ...rules.Rule) *rules.Policy {
	t.Helper()
	p, err := rules.New(list, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Only allow, only deny, both, none: what no rule allows is denied, and deny wins.
func TestT3_WhatNoRuleAllowsIsDenied(t *testing.T) {
	t.Parallel()
	allow := rules.Rule{Name: "a", Decision: lathe.Allow, Tool: "x*"}
	ask := rules.Rule{Name: "q", Decision: lathe.Ask, Tool: "*y"}
	deny := rules.Rule{Name: "d", Decision: lathe.Deny, Tool: "xz"}
	for _, tt := range []struct {
		name string
		list []rules.Rule
		tool string
		want lathe.Decision
		rule string
	}{
		{"none", nil, "x", lathe.Deny, "rules.none"},
		{"allow only, fits", []rules.Rule{allow}, "x1", lathe.Allow, "a"},
		{"allow only, other tool", []rules.Rule{allow}, "y", lathe.Deny, "rules.none"},
		{"deny only, other tool", []rules.Rule{deny}, "x", lathe.Deny, "rules.none"},
		{"deny wins over allow", []rules.Rule{allow, deny}, "xz", lathe.Deny, "d"},
		{"ask wins over allow", []rules.Rule{allow, ask}, "xy", lathe.Ask, "q"},
		{"an unknown decision denies", []rules.Rule{allow, {Name: "u", Decision: 9, Tool: "x"}}, "x", 9, "u"},
		{"the zero rule denies", []rules.Rule{allow, {Name: "zero"}}, "x", lathe.Deny, "zero"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := compile(t, tt.list...)
			c := call(tt.tool, lathe.Writes, `{}`)
			if got := p.Call(c); got.Decision != tt.want || got.Rule != tt.rule {
				t.Errorf("Call = %v by %s, want %v by %s", got.Decision, got.Rule, tt.want, tt.rule)
			}
			if got := p.Tool(c.Run, c.Tool); got.Decision != tt.want || got.Rule != tt.rule {
				t.Errorf("Tool = %v by %s, want %v by %s", got.Decision, got.Rule, tt.want, tt.rule)
			}
		})
	}
}

func TestConditions(t *testing.T) {
	t.Parallel()
	const args = `{"db":"prod","n":100,"f":2.5,"big":18446744073709551615,"huge":12345678901234567890123,"list":[1,{"a":null}],"s":"a\u0041","to":["x@ours.test"]}`
	for _, tt := range []struct {
		when    string
		fits    bool
		failing bool // fails closed
	}{
		{`args.db == "prod"`, true, false},
		{`args.db == "test"`, false, false},
		{`args.n > 99 && args.n < 100.5`, true, false},
		{`args.f == 2.5`, true, false},
		{`args.big == 18446744073709551615u`, true, false},
		{`args.huge > 1`, false, true},
		{`args.s == "aA"`, true, false},
		{`args.list[1].a == null`, true, false},
		{`has(args.nothing)`, false, false},
		{`args.nothing == 1`, false, true},
		{`args.db > 5`, false, true},
		{`args.db.contains("r")`, true, false},
		{`args.n.contains("r")`, false, true},
		{`args.to.all(a, a.endsWith("@ours.test"))`, true, false},
		{`tool == "t" && effect == "writes" && principal == "ci" && labels.env == "prod" && turn == 2 && seq == 3`, true, false},
		{`labels.team == "a"`, false, true},
		{`used["t"] > 0`, false, true},
		{`"t" in used`, false, false},
	} {
		t.Run(tt.when, func(t *testing.T) {
			t.Parallel()
			c := call("t", lathe.Writes, args)
			for _, d := range []lathe.Decision{lathe.Allow, lathe.Ask, lathe.Deny} {
				p := compile(t, rules.Rule{Name: "r", Decision: d, When: tt.when})
				want := tt.fits
				if tt.failing {
					want = d != lathe.Allow
				}
				if got := p.Call(c).Rule == "r"; got != want {
					t.Errorf("%v: fits %v, want %v", d, got, want)
				}
			}
		})
	}
}

// A condition that costs too much is not carried to its end, and fails closed.
func TestT16_CostLimitFailsClosed(t *testing.T) {
	t.Parallel()
	args := `{"l":[` + strings.TrimSuffix(strings.Repeat("1,", 2000), ",") + `]}`
	c := call("t", lathe.Writes, args)
	const when = `args.l.all(a, args.l.all(b, args.l.all(c, a == b && b == c)))`
	if v := compile(t, rules.Rule{Name: "r", Decision: lathe.Allow, When: when}).Call(c); v.Rule == "r" {
		t.Errorf("an allow rule beyond the cost limit fits")
	}
	p := compile(t, rules.Rule{Name: "r", Decision: lathe.Deny, When: when})
	if v := p.Call(c); v.Rule != "r" || v.Decision != lathe.Deny {
		t.Errorf("a deny rule beyond the cost limit: got %+v", v)
	}
	if f := p.Explain(c); !strings.Contains(f[0].Why, "cost limit") {
		t.Errorf("got %q", f[0].Why)
	}
}

func TestProblemsNameTheirPlace(t *testing.T) {
	t.Parallel()
	_, err := rules.New([]rules.Rule{
		{Name: "good", When: `args.a == 1`},
		{Name: "slip", When: "args.a == 1 &&\n  argz.b"},
		{Name: "not a bool", When: `args.size`},
		{Name: "text", When: `"yes"`},
		{Name: "", Effect: "reads"},
		{Name: "long", When: strings.Repeat("a", 4097)},
		{Name: "syntax", When: `args.(`},
	}, nil)
	var ps rules.Problems
	if !errors.As(err, &ps) {
		t.Fatalf("got %v", err)
	}
	var got []string
	for _, p := range ps {
		got = append(got, fmt.Sprintf("%d %s %d", p.Rule, p.Field, p.Line))
	}
	want := "1 when 2|2 when 1|3 when 1|4 name 0|4 effect 0|5 when 0|6 when 1"
	if s := strings.Join(got, "|"); !strings.HasPrefix(s, want) {
		t.Errorf("got  %s\nwant %s", s, want)
	}
}

func TestToolShowsWhatACallCouldGet(t *testing.T) {
	t.Parallel()
	const when = `args.a == 1`
	allowIf := rules.Rule{Name: "allow-if", Decision: lathe.Allow, When: when}
	askIf := rules.Rule{Name: "ask-if", Decision: lathe.Ask, When: when}
	denyIf := rules.Rule{Name: "deny-if", When: when}
	ask := rules.Rule{Name: "ask", Decision: lathe.Ask}
	for _, tt := range []struct {
		name string
		list []rules.Rule
		rest lathe.Policy
		want lathe.Decision
	}{
		{"allowed under a condition", []rules.Rule{allowIf}, nil, lathe.Allow},
		{"asked under a condition", []rules.Rule{askIf, denyIf}, nil, lathe.Ask},
		{"only denied", []rules.Rule{denyIf}, nil, lathe.Deny},
		{"denied under a condition, else allowed", []rules.Rule{denyIf}, policy.AllowAll(), lathe.Allow},
		{"always asked, whatever else", []rules.Rule{allowIf, ask, denyIf}, policy.AllowAll(), lathe.Ask},
	} {
		p, err := rules.New(tt.list, &rules.Options{Else: tt.rest})
		if err != nil {
			t.Fatal(err)
		}
		c := call("t", lathe.Writes, `{}`)
		if got := p.Tool(c.Run, c.Tool).Decision; got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

var (
	conditions = []string{"", `args.a == 1`, `args.a > 1`, `args.b.contains("x")`, `has(args.c)`, `args.missing == 1`}
	anyRule    = rapid.Custom(func(t *rapid.T) rules.Rule {
		return rules.Rule{
			Name:      rapid.SampledFrom([]string{"r1", "r2", "r3", "r4"}).Draw(t, "name"),
			Decision:  lathe.Decision(rapid.IntRange(0, 2).Draw(t, "decision")),
			Tool:      rapid.SampledFrom([]string{"", "x", "x*", "?", "y"}).Draw(t, "tool"),
			Effect:    rapid.SampledFrom([]string{"", "read_only", "writes"}).Draw(t, "effect"),
			When:      rapid.SampledFrom(conditions).Draw(t, "when"),
			Principal: rapid.SampledFrom([]string{"", "ci", "other"}).Draw(t, "principal"),
		}
	})
	anyCall = rapid.Custom(func(t *rapid.T) *lathe.CallInfo {
		return call(rapid.SampledFrom([]string{"x", "xx", "y"}).Draw(t, "name"), lathe.Effect(rapid.IntRange(0, 3).Draw(t, "effect")),
			rapid.SampledFrom([]string{`{}`, `{"a":1}`, `{"a":2,"b":"xy"}`, `{"a":"1","c":null}`}).Draw(t, "args"))
	})
)

func strictness(d lathe.Decision) int { return map[lathe.Decision]int{lathe.Ask: 1, lathe.Allow: 2}[d] }

// The algebra: order and repetition do not matter, a rule that holds back never makes milder, a rule
// that allows never makes stricter, and Tool is never stricter than Call.
func TestAlgebra(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(anyRule, 0, 5).Draw(t, "rules")
		c := anyCall.Draw(t, "call")
		rest := rapid.SampledFrom([]lathe.Policy{nil, policy.Default(), policy.AllowAll()}).Draw(t, "else")
		verdict := func(list []rules.Rule) lathe.Verdict {
			p, err := rules.New(list, &rules.Options{Else: rest})
			if err != nil {
				t.Fatal(err)
			}
			if tv, v := p.Tool(c.Run, c.Tool), p.Call(c); strictness(tv.Decision) < strictness(v.Decision) {
				t.Fatalf("Tool says %v, and Call %v", tv, v)
			}
			return p.Call(c)
		}
		got := verdict(list)
		if v := verdict(rapid.Permutation(list).Draw(t, "shuffled")); v != got {
			t.Fatalf("order matters: %v and %v", got, v)
		}
		if v := verdict(append(append([]rules.Rule{}, list...), list...)); v != got {
			t.Fatalf("repetition matters: %v and %v", got, v)
		}
		more := anyRule.Draw(t, "more")
		v := verdict(append(append([]rules.Rule{}, list...), more))
		switch more.Decision {
		case lathe.Deny:
			if strictness(v.Decision) > strictness(got.Decision) {
				t.Fatalf("a deny rule turned %v into %v", got, v)
			}
		case lathe.Ask:
			if v.Decision == lathe.Allow && got.Decision != lathe.Allow {
				t.Fatalf("an ask rule turned %v into %v", got, v)
			}
		case lathe.Allow:
			if got.Rule != "rules.none" && got.Rule[0] == 'r' && strictness(v.Decision) < strictness(got.Decision) {
				t.Fatalf("an allow rule turned %v into %v", got, v)
			}
		}
	})
}

func TestExplain(t *testing.T) {
	t.Parallel()
	p := compile(t,
		rules.Rule{Name: "all", Decision: lathe.Allow},
		rules.Rule{Name: "big", Decision: lathe.Deny, When: `args.amount > 10`, Source: "policy.rules.big"},
		rules.Rule{Name: "mail", Decision: lathe.Ask, Tool: "send_*"},
		rules.Rule{Name: "bots", Decision: lathe.Deny, Principal: "bot-*"},
		rules.Rule{Name: "stage", Decision: lathe.Deny, Labels: map[string]string{"env": "stage"}},
		rules.Rule{Name: "reads", Decision: lathe.Deny, Effect: "read_only"},
	)
	v, found := policy.Explain(p, call("send_mail", lathe.Writes, `{}`))
	if v.Decision != lathe.Deny || v.Rule != "big" {
		t.Fatalf("got %+v", v)
	}
	var b strings.Builder
	for _, f := range found {
		fmt.Fprintf(&b, "%s%s matched=%v decides=%v: %s\n", f.Source, f.Rule, f.Matched, f.Decides, f.Why)
	}
	const want = `policy.rules.bigbig matched=true decides=true: its condition cannot be evaluated, which counts as met: no such key: amount
bots matched=false decides=false: the run has another principal
reads matched=false decides=false: the tool has another effect: writes
stage matched=false decides=false: the run does not have its labels
mail matched=true decides=false: it has no condition on the arguments
all matched=true decides=false: it has no condition on the arguments
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

// What a condition sees is what the tool gets: escapes are read, and no number is rounded.
func TestT11_ConditionsSeeWhatTheToolGets(t *testing.T) {
	t.Parallel()
	p := compile(t, rules.Rule{Name: "ok", Decision: lathe.Allow}, rules.Rule{Name: "no", When: `args.id == 9007199254740993 || args.path.startsWith("/etc")`})
	for args, want := range map[string]lathe.Decision{
		`{"id":9007199254740993,"path":""}`:      lathe.Deny,
		`{"id":9007199254740992,"path":""}`:      lathe.Allow,
		`{"id":1,"path":"\u002fet\u0063/x"}`:     lathe.Deny,
		`{"id":1,"p\u0061th":"/etc/x"}`:          lathe.Deny,
		`{"id":99007199254740993123,"path":"a"}`: lathe.Deny,
		`{"id":9007199254740993.0,"path":""}`:    lathe.Deny,
		`{"id":9.007199254740993e15,"path":""}`:  lathe.Deny,
		`{"id":90071992547409930e-1,"path":""}`:  lathe.Deny,
		`{"id":9007199254740993.1,"path":""}`:    lathe.Deny, // no double stands for it
		`{"id":1e999999999999999999,"path":""}`:  lathe.Deny,
		`{"id":1e400,"path":""}`:                 lathe.Deny,
		`{"id":1e2,"path":""}`:                   lathe.Allow,
		`{"id":-0.0,"path":""}`:                  lathe.Allow,
		`{"id":0.1,"path":""}`:                   lathe.Allow,
		`{"id":3.141592653589793,"path":""}`:     lathe.Allow,
		`{"id":1.0000000000000000001,"path":""}`: lathe.Deny,
	} {
		if got := p.Call(call("t", lathe.Writes, args)).Decision; got != want {
			t.Errorf("%s: got %v, want %v", args, got, want)
		}
	}
}

func FuzzCondition(f *testing.F) {
	for _, c := range conditions {
		f.Add(c, `{"a":1}`)
	}
	f.Add(`args.l.map(x, x*2).exists(y, y > 2)`, `{"l":[1,2]}`)
	f.Fuzz(func(t *testing.T, when, args string) {
		p, err := rules.New([]rules.Rule{{Name: "r", Decision: lathe.Allow, When: when}}, nil)
		if err != nil {
			return
		}
		a, b := p.Call(call("t", lathe.Writes, args)), p.Call(call("t", lathe.Writes, args))
		if a != b {
			t.Errorf("%q is not pure: %v and %v", when, a, b)
		}
	})
}

// Mail goes out after a question, and never to strangers; notes may be written.
func Example() {
	p, err := rules.New([]rules.Rule{
		{Name: "ask-before-mail", Decision: lathe.Ask, Tool: "send_*"},
		{Name: "ours-only", Decision: lathe.Deny, Tool: "send_*", When: `!args.to.endsWith("@example.com")`},
		{Name: "notes", Decision: lathe.Allow, Tool: "save_note"},
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range []*lathe.CallInfo{
		call("send_mail", lathe.Writes, `{"to":"ann@example.com"}`),
		call("send_mail", lathe.Writes, `{"to":"eve@elsewhere.test"}`),
		call("send_mail", lathe.Writes, `{}`),
		call("save_note", lathe.Writes, `{}`),
	} {
		v := p.Call(c)
		fmt.Println(c.Tool.Name, string(c.Args), v.Decision, v.Rule)
	}
	// Output:
	// send_mail {"to":"ann@example.com"} ask ask-before-mail
	// send_mail {"to":"eve@elsewhere.test"} deny ours-only
	// send_mail {} deny ours-only
	// save_note {} allow notes
}

func BenchmarkCall(b *testing.B) {
	p := compile(b, rules.Rule{Name: "no", When: `args.db == "prod" && args.n > 100`}, rules.Rule{Name: "ok", Decision: lathe.Allow, Tool: "d*"})
	c := call("db", lathe.Writes, `{"db":"prod","n":1}`)
	b.ReportAllocs()
	for b.Loop() {
		p.Call(c)
	}
}

// A number is the same to a condition however it is written.
func TestT11_NumbersHaveOneValue(t *testing.T) {
	t.Parallel()
	for value, forms := range map[string][]string{
		`100`:                   {"100", "1e2", "100.0", "1E+2", "0.1e3", "1000e-1", "100.000"},
		`-100`:                  {"-100", "-1e2", "-100.0"},
		`0`:                     {"0", "-0", "0.0", "0e5", "-0.00", "0e-99999"},
		`2.5`:                   {"2.5", "2.50", "25e-1", "0.25e1"},
		`18446744073709551615u`: {"18446744073709551615", "18446744073709551615.0"},
		`-9223372036854775808`:  {"-9223372036854775808", "-9223372036854775808.00"},
	} {
		p := compile(t, rules.Rule{Name: "same", Decision: lathe.Allow, When: "args.n == " + value})
		for _, n := range forms {
			if v := p.Call(call("t", lathe.Writes, `{"n":`+n+`}`)); v.Rule != "same" {
				t.Errorf("%s is not %s: %+v", n, value, v)
			}
		}
	}
}
