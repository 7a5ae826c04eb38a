package loop_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/runinput"
	"github.com/lathe-run/lathe/lathetest"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

// What would leave a model without a tool is an error or a warning that says what to do, never a cheerful answer alone.
func TestMistakesAreNotSilent(t *testing.T) {
	t.Parallel()
	type place struct {
		City string `json:"city"`
	}
	type report struct {
		City   string `json:"city"`
		Secret string
	}
	weather := func(o *tool.FuncOptions) lathe.Tool {
		return tool.Func("weather", "w", func(context.Context, place) (string, error) { return "dry", nil }, o)
	}
	reads := &tool.FuncOptions{Effect: lathe.ReadOnly}
	usual := func() *tool.Options { return &tool.Options{Policy: policy.Default()} }
	for name, tt := range map[string]struct {
		tool  lathe.Tool
		opts  *tool.Options
		in    loop.Input
		wants []string
	}{
		"no options":        {weather(reads), nil, loop.Input{}, []string{"invalid_config", "policy.Default()"}},
		"no policy":         {weather(reads), &tool.Options{}, loop.Input{}, []string{"invalid_config", "policy.Default()"}},
		"no effect":         {weather(&tool.FuncOptions{}), usual(), loop.Input{}, []string{"level=WARN", "tool_name=weather", "reason=undeclared_effect", "tool.FuncOptions.Effect", "answered", "withheld: weather is withheld since it declares no effect"}},
		"no FuncOptions":    {weather(nil), usual(), loop.Input{}, []string{"level=WARN", "tool.FuncOptions.Effect"}},
		"no approver":       {weather(&tool.FuncOptions{Effect: lathe.Writes}), usual(), loop.Input{}, []string{"answered", "withheld: weather is withheld since the policy requires an approval", "tool.Options.Approver"}},
		"denied":            {weather(reads), &tool.Options{Policy: policy.Effects{}}, loop.Input{}, []string{"answered", "allow it in the policy"}},
		"an untagged field": {tool.Func("weather", "w", func(context.Context, place) (report, error) { return report{}, nil }, nil), usual(), loop.Input{}, []string{"invalid_config", "field Secret", `write Show: []string{"*"}`}},
		"a typo in Allow":   {weather(reads), usual(), loop.Input{Allow: []string{"wether"}}, []string{"invalid_request", `Allow has "wether"`, "did you mean weather?"}},
		"another in Allow":  {weather(reads), usual(), loop.Input{Allow: []string{"weather", "forecast"}}, []string{"invalid_request", `Allow has "forecast"`, "it has weather"}},
		"an absent one":     {weather(reads), usual(), *runinput.With(&loop.Input{Allow: []string{"weather", "forecast"}}, runinput.Extra{AllowAbsent: true}), []string{"answered"}},
		"none":              {weather(reads), usual(), loop.Input{Allow: []string{}}, []string{"answered"}},
	} {
		got := outcomeOf(t, tt.tool, tt.opts, tt.in)
		for _, want := range tt.wants {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %s\nwant %q", name, got, want)
			}
		}
	}
}

// outcomeOf returns all that a program sees of one run: the log, errors, the reason of the end, and the withheld tools.
func outcomeOf(t *testing.T, f lathe.Tool, opts *tool.Options, in loop.Input) string {
	t.Helper()
	var log bytes.Buffer
	if opts != nil {
		opts.Log = slog.New(slog.NewTextHandler(&log, nil))
	}
	set, err := tool.NewSet(f)
	if err != nil {
		return err.Error()
	}
	runner, err := tool.NewRunner(set, opts)
	if err != nil {
		return err.Error()
	}
	l, err := loop.New(lathetest.NewModel(lathetest.Text("It rains.")), runner, nil)
	if err != nil {
		return err.Error()
	}
	in.Messages = []lathe.Message{lathe.User("What is the weather in Oslo?")}
	res, err := l.Do(t.Context(), &in)
	if err != nil {
		return err.Error()
	}
	log.WriteString(string(res.Reason))
	for _, held := range res.Withheld {
		log.WriteString("\nwithheld: " + held.Explain())
	}
	return log.String()
}
