package builtin_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the test knows its zones wherever it runs

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/builtin"
)

// run calls a tool through a runner and returns the result that the model gets.
func run(t testing.TB, tools []lathe.Tool, name, args string) lathe.ToolResult {
	t.Helper()
	set, err := tool.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.AllowAll()})
	if err != nil {
		t.Fatal(err)
	}
	w := runner.Begin(&lathe.RunInfo{}, nil)
	out := w.Execute(t.Context(), 1, []tool.Call{{ToolCall: lathe.ToolCall{Name: name, Arguments: args}}}, func(event.Data) {})
	return out.Messages[0].Parts[0].(lathe.ToolResult)
}

func fixedNow() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC) }

func TestNamesAreThoseOfTheTools(t *testing.T) {
	t.Parallel()
	ws, err := builtin.NewWorkspace(nil)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, tl := range slices.Concat(builtin.Tools(nil), ws.Tools()) {
		want = append(want, tl.Spec().Name)
	}
	slices.Sort(want)
	if got := builtin.Names(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestGetCurrentTime(t *testing.T) {
	t.Parallel()
	tools := builtin.Tools(&builtin.Options{Now: fixedNow})
	for _, tt := range []struct {
		args, want string
		code       lathe.Code
	}{
		{``, `{"currentTime":"2026-01-02T03:04:05Z"}`, ""},
		{`{"zone":"UTC"}`, `{"currentTime":"2026-01-02T03:04:05Z"}`, ""},
		{`{"zone":"Asia/Kolkata"}`, `{"currentTime":"2026-01-02T08:34:05+05:30"}`, ""},
		{`{"zone":"Mars/Olympus"}`, "", lathe.CodeInvalidArguments},
		{`{"zone":"Local"}`, "", lathe.CodeInvalidArguments},
		{`{"zone":"../../etc/passwd"}`, "", lathe.CodeInvalidArguments},
		{`{"zone":5}`, "", lathe.CodeInvalidArguments},
	} {
		got := run(t, tools, "get_current_time", tt.args)
		if got.Code != tt.code || tt.want != "" && got.Content != tt.want {
			t.Errorf("%s: %q %s, want %q %s", tt.args, got.Code, got.Content, tt.code, tt.want)
		}
	}
}

func TestCalculator(t *testing.T) {
	t.Parallel()
	tools := builtin.Tools(nil)
	for _, tt := range []struct{ in, want string }{
		{"6*7", `{"result":42,"exact":true}`},
		{"0.1 + 0.2", `{"result":0.3,"exact":true}`},
		{"1/3", `{"result":"0.3333333333333333333333333333333333","exact":false}`},
		{"1/8", `{"result":0.125,"exact":true}`},
		{"2^10", `{"result":1024,"exact":true}`},
		{"2^-2", `{"result":0.25,"exact":true}`},
		{"-2^2", `{"result":-4,"exact":true}`},
		{"2^3^2", `{"result":512,"exact":true}`},
		{"2**3", `{"result":8,"exact":true}`},
		{"(1+2)*(3-4)", `{"result":-3,"exact":true}`},
		{"7 % 3", `{"result":1,"exact":true}`},
		{"-7 % 3", `{"result":-1,"exact":true}`},
		{"7.5 % 2", `{"result":1.5,"exact":true}`},
		{"3 × 4 ÷ 2 − 1", `{"result":5,"exact":true}`},
		{"--3", `{"result":3,"exact":true}`},
		{"1e3", `{"result":1000,"exact":true}`},
		{"2.5e-1", `{"result":0.25,"exact":true}`},
		{".5", `{"result":0.5,"exact":true}`},
		{"9007199254740993 + 0", `{"result":9007199254740993,"exact":true}`},
		{"99999999999999999999 * 99999999999999999999", `{"result":9999999999999999999800000000000000000001,"exact":true}`},
		{"10 - 2 - 3", `{"result":5,"exact":true}`},
		{"100 / 10 / 2", `{"result":5,"exact":true}`},
		{"\t1\n+\r1 ", `{"result":2,"exact":true}`},
	} {
		args, _ := json.Marshal(map[string]string{"expression": tt.in})
		if got := run(t, tools, "calculator", string(args)); got.Content != tt.want {
			t.Errorf("%s = %s, want %s", tt.in, got.Content, tt.want)
		}
	}
}

func TestCalculatorRefuses(t *testing.T) {
	t.Parallel()
	tools := builtin.Tools(nil)
	for _, tt := range []struct{ in, detail string }{
		{"", "ends too early"},
		{"1+", "ends too early"},
		{"(1", "ends too early"},
		{"1)", "byte 2"},
		{"1 2", "byte 3"},
		{"1..2", "byte 1"},
		{".", "byte 1"},
		{"1e", "byte 2"},
		{"x", "byte 1"},
		{"1/0", "division by zero"},
		{"1%0", "division by zero"},
		{"0^-1", "division by zero"},
		{"2^0.5", "whole number"},
		{"2^1025", "at most 1024"},
		{"9^1024^1024", "1024"},
		{"(2^1024)^1024", "too large"},
		{"1e1025", "too large"},
		{"1e99999999999999999999", "too large"},
		{strings.Repeat("(", 400), "nested"},
		{strings.Repeat("-", 400) + "1", "nested"},
		{strings.Repeat("1+", 500) + "1", "longer than"},
	} {
		args, _ := json.Marshal(map[string]string{"expression": tt.in})
		got := run(t, tools, "calculator", string(args))
		if got.Code != lathe.CodeInvalidArguments || !strings.Contains(got.Content, tt.detail) {
			t.Errorf("%.40s: %q %s, want invalid_arguments with %q", tt.in, got.Code, got.Content, tt.detail)
		}
	}
}

func FuzzCalculator(f *testing.F) {
	for _, s := range []string{"1+2*3", "(2^8)%7", "1/3", "-.5e3", "2**-3", "÷", "9^9^9"} {
		f.Add(s)
	}
	tools := builtin.Tools(nil)
	f.Fuzz(func(t *testing.T, expression string) {
		args, err := json.Marshal(map[string]string{"expression": expression})
		if err != nil {
			t.Skip()
		}
		got := run(t, tools, "calculator", string(args))
		if got.Code != "" && got.Code != lathe.CodeInvalidArguments {
			t.Errorf("%q: code %q", expression, got.Code)
		}
		if got.Code == "" && len(got.Content) > 6_100 {
			t.Errorf("%q: %d bytes", expression, len(got.Content))
		}
	})
}

func Example() {
	set, err := tool.NewSet(builtin.Tools(nil)...)
	if err != nil {
		panic(err)
	}
	for _, spec := range set.Specs() {
		if spec.Name == "calculator" {
			fmt.Println(spec.Name, spec.Effect)
		}
	}
	// Output: calculator read_only
}
