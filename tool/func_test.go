package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

type weatherArgs struct {
	City string `json:"city" jsonschema:"the city's name"`
	Days int    `json:"days,omitzero"`
	Any  any    `json:"any,omitzero"`
}

type weather struct {
	Temp    float64        `json:"temp"`
	Notes   []string       `json:"notes"`
	Extra   map[string]int `json:"extra,omitzero"`
	private int
}

type level int8

type counted struct {
	I     int             `json:"i,omitzero"`
	U     uint16          `json:"u,omitzero"`
	Level level           `json:"level,omitzero"`
	List  []int64         `json:"list,omitzero"`
	Map   map[string]int  `json:"map,omitzero"`
	Ptr   *int            `json:"ptr,omitzero"`
	Any   any             `json:"any,omitzero"`
	Raw   json.RawMessage `json:"raw,omitzero"`
}

// 1.0 and 1e2 are integers to JSON Schema, so a tool that the schema lets them reach takes them.
func TestIntegerFieldsTakeNumbersWithoutFraction(t *testing.T) {
	t.Parallel()
	count := tool.Func("count", "", func(_ context.Context, in counted) (counted, error) { return in, nil }, &tool.FuncOptions{Show: []string{"*"}})
	for args, want := range map[string]string{
		`{"i":1.0}`: `{"i":1}`, `{"i":1e2,"u":65535.0,"level":-1.28e2}`: `{"i":100,"u":65535,"level":-128}`,
		`{"list":[9007199254740993.0,2],"map":{"a":3e0},"ptr":4.0}`: `{"list":[9007199254740993,2],"map":{"a":3},"ptr":4}`,
		`{"any":1.0,"raw":1.0}`: `{"any":1.0,"raw":1.0}`,
		`{"i":1.5}`:             "at /i does not fit int", `{"u":65536.0}`: "does not fit", `{"u":-1.0}`: "does not fit", `{"level":1e3}`: "does not fit", `{"i":1e30}`: "does not fit",
	} {
		out, err := count.Call(context.Background(), json.RawMessage(args))
		var failure *tool.Failure
		switch {
		case err != nil && (!errors.As(err, &failure) || failure.Code != lathe.CodeInvalidArguments || !strings.Contains(failure.Message, want)):
			t.Errorf("%s: %v %+v, want %s", args, err, failure, want)
		case err == nil && string(out.Data) != want:
			t.Errorf("%s becomes %s, want %s", args, out.Data, want)
		}
	}
}

func TestFunc(t *testing.T) {
	t.Parallel()
	var got weatherArgs
	f := tool.Func("weather", "Get the weather.", func(_ context.Context, in weatherArgs) (weather, error) {
		got = in
		return weather{Temp: 21.5, Extra: map[string]int{"b": 2, "a": 1}, private: 1}, nil
	}, &tool.FuncOptions{Effect: lathe.ReadOnly, Show: []string{"*"}})
	w := open(t, limits(lathe.Limits{MaxRepeatedCalls: 100}), f)
	spec := w.Specs()[0]
	if spec.Origin != "go" || spec.Effect != lathe.ReadOnly || !strings.Contains(string(spec.Schema), `"the city's name"`) || !strings.Contains(string(spec.Schema), `"required":["city"]`) {
		t.Errorf("spec %+v with schema %s", spec, spec.Schema)
	}
	for _, tt := range []struct {
		args string
		code lathe.Code
		want string
	}{
		{`{"city":"Paris","days":3}`, "", `{Paris 3 <nil>}`},
		{`{"city":"Paris","any":12345678901234567890.5}`, "", `{Paris 0 12345678901234567890.5}`},
		{`{"city":"Paris","any":{"a":[9007199254740993]}}`, "", `{Paris 0 map[a:[9007199254740993]]}`},
		{`{"city":"Paris","days":1.5}`, lathe.CodeInvalidArguments, ""},
		{`{"city":"Paris","days":1e3}`, "", `{Paris 1000 <nil>}`},
		{`{"city":"Paris","days":99999999999999999999}`, lathe.CodeInvalidArguments, ""},
		{`{"City":"Paris"}`, lathe.CodeInvalidArguments, ""},
		{`{"city":"Paris","x":1}`, lathe.CodeInvalidArguments, ""},
		{`{}`, lathe.CodeInvalidArguments, ""},
		{`{"city":null}`, lathe.CodeInvalidArguments, ""},
	} {
		got = weatherArgs{}
		res, _, _ := one(t, w, call("weather", tt.args))
		if res.Code != tt.code || tt.code == "" && fmt.Sprint(got) != tt.want {
			t.Errorf("%s: code %q, the function got %v; want %q %s", tt.args, res.Code, got, tt.code, tt.want)
		}
		if want := `{"temp":21.5,"notes":[],"extra":{"a":1,"b":2}}`; tt.code == "" && res.Content != want {
			t.Errorf("answer %s, want %s", res.Content, want)
		}
	}
}

// Arguments that fit the schema but not the Go types return an error to the model that does not quote their values.
func TestFuncMisfit(t *testing.T) {
	t.Parallel()
	f := tool.Func("t", "", func(_ context.Context, in struct {
		N int8 `json:"n"`
	}) (int8, error) {
		return in.N, nil
	}, &tool.FuncOptions{Show: []string{"*"}, Schema: json.RawMessage(anyObject)})
	for args, want := range map[string]string{
		`{"n":127}`:      "127",
		`{"n":128}`:      "the value at /n does not fit int8",
		`{"n":"secret"}`: "the value at /n does not fit int8",
		`{"m":1}`:        "/m",
	} {
		res, _, _ := one(t, open(t, nil, f), call("t", args))
		if !strings.Contains(res.Content, want) || res.IsError && res.Code != lathe.CodeInvalidArguments || strings.Contains(res.Content, "secret") {
			t.Errorf("%s: %q %s, want %q", args, res.Code, res.Content, want)
		}
	}
}

func TestFuncOutputs(t *testing.T) {
	t.Parallel()
	show := &tool.FuncOptions{Show: []string{"*"}}
	none := struct{}{}
	for name, tt := range map[string]struct {
		tool lathe.Tool
		code lathe.Code
		want string
	}{
		"text": {tool.Func("t", "", func(context.Context, struct{}) (string, error) { return "a\"b", nil }, show), "", `a"b`},
		"raw":  {tool.Func("t", "", func(context.Context, struct{}) (json.RawMessage, error) { return json.RawMessage(`{"a":1.0}`), nil }, show), "", `{"a":1.0}`},
		"output": {tool.Func("t", "", func(context.Context, struct{}) (*lathe.Output, error) {
			return &lathe.Output{Data: json.RawMessage(`7`)}, nil
		}, show), "", `7`},
		"no output": {tool.Func("t", "", func(context.Context, struct{}) (*lathe.Output, error) { return nil, nil }, show), lathe.CodeInvalidOutput, ""},
		"nothing":   {tool.Func("t", "", func(context.Context, struct{}) (struct{}, error) { return none, nil }, show), "", `{}`},
		"NaN":       {tool.Func("t", "", func(context.Context, struct{}) (float64, error) { return math.NaN(), nil }, show), lathe.CodeInvalidOutput, ""},
		"an error":  {tool.Func("t", "", func(context.Context, struct{}) (int, error) { return 0, errBoom }, show), lathe.CodeExecutionFailed, ""},
		"a failure": {tool.Func("t", "", func(context.Context, struct{}) (int, error) {
			return 0, tool.Fail(lathe.CodeUnavailable, "closed today")
		}, show), lathe.CodeUnavailable, ""},
	} {
		res, _, _ := one(t, open(t, nil, tt.tool), call("t", ""))
		if res.Code != tt.code || tt.want != "" && res.Content != tt.want {
			t.Errorf("%s: %q %s, want %q %s", name, res.Code, res.Content, tt.code, tt.want)
		}
	}
}

func TestFuncThatCannotBeRegistered(t *testing.T) {
	t.Parallel()
	show := &tool.FuncOptions{Show: []string{"*"}}
	type loop struct{ Next *loop }
	for name, tt := range map[string]struct {
		tool lathe.Tool
		want string
	}{
		"no Show":  {tool.Func("t", "", func(context.Context, struct{}) (map[string]any, error) { return nil, nil }, nil), `write Show: []string{"*"} in FuncOptions`},
		"channel":  {tool.Func("t", "", func(context.Context, struct{ C chan int }) (int, error) { return 1, nil }, show), "no schema for its input: field C of struct { C chan int }: chan int has no JSON form. Correct the type, or set FuncOptions.Schema"},
		"itself":   {tool.Func("t", "", func(context.Context, loop) (int, error) { return 1, nil }, show), "no schema for its input"},
		"a number": {tool.Func("t", "", func(context.Context, int) (int, error) { return 1, nil }, show), "must be \"object\""},
		"nil":      {tool.Func[struct{}, int]("t", "", nil, show), "the function is nil"},
	} {
		if _, err := tool.NewSet(tt.tool); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", name, err, tt.want)
		}
	}
}

func TestFailure(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("x: %w", tool.Fail(lathe.CodeUnavailable, "for the model: %d", 5))
	var f *tool.Failure
	if !errors.As(err, &f) || f.Message != "for the model: 5" || strings.Contains(err.Error(), "model") {
		t.Errorf("error %v, failure %+v", err, f)
	}
}

// A Go function becomes a tool; the model sees the fields that it may see.
func ExampleFunc() {
	type args struct {
		City string `json:"city" jsonschema:"name of the city"`
	}
	type report struct {
		Temp    float64 `json:"temp"`
		Station string  `json:"station"`
	}
	weather := tool.Func("get_weather", "Get the weather of a city.",
		func(_ context.Context, in args) (report, error) {
			if in.City != "Paris" {
				return report{}, tool.Fail(lathe.CodeInvalidArguments, "only Paris is known")
			}
			return report{Temp: 21.5, Station: "internal-7"}, nil
		}, &tool.FuncOptions{Effect: lathe.ReadOnly, Show: []string{"temp"}})

	set, err := tool.NewSet(weather)
	if err != nil {
		panic(err)
	}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.Default()})
	if err != nil {
		panic(err)
	}
	work := runner.Begin(&lathe.RunInfo{RunID: "run_1"}, nil)
	for _, city := range []string{"Paris", "Atlantis"} {
		out := work.Execute(context.Background(), 1, []tool.Call{
			{ToolCall: lathe.ToolCall{ID: "call_" + city, Name: "get_weather", Arguments: `{"city":"` + city + `"}`}},
		}, func(event.Data) {})
		fmt.Println(out.Messages[0].Parts[0].(lathe.ToolResult).Content)
	}
	// Output:
	// {"temp":21.5}
	// {"ok":false,"error":{"code":"invalid_arguments","message":"The arguments are not what the tool takes. Correct what the error names and call the tool again.","detail":"only Paris is known"}}
}

// A number that a function passes on keeps its digits and stays a number.
func TestFuncNumbersStayNumbers(t *testing.T) {
	t.Parallel()
	type value struct {
		X any `json:"x"`
	}
	f := tool.Func("t", "d", func(_ context.Context, in value) (value, error) { return in, nil },
		&tool.FuncOptions{Show: []string{"*"}, Schema: json.RawMessage(anyObject)})
	w := open(t, nil, f)
	for _, args := range []string{`{"x":9007199254740993}`, `{"x":[1.10,-0,1e400,{"a":0.1}]}`} {
		if res, _, _ := one(t, w, call("t", args)); res.Content != args {
			t.Errorf("%s came back as %s", args, res.Content)
		}
	}
	for n, want := range map[json.Number]string{"": `{"x":0}`, "12.50": `{"x":12.50}`, "no number": ""} {
		f := tool.Func("t", "d", func(context.Context, struct{}) (value, error) { return value{n}, nil }, &tool.FuncOptions{Show: []string{"*"}})
		res, _, _ := one(t, open(t, nil, f), call("t", ""))
		if want != "" && res.Content != want || want == "" && res.Code != lathe.CodeInvalidOutput {
			t.Errorf("%q came out as %q %s", n, res.Code, res.Content)
		}
	}
}
