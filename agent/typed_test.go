package agent_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/agent"
	"github.com/lathe-run/lathe/lathetest"
)

type summary struct {
	Orders []string `json:"orders"`
	Total  int      `json:"total"`
}

// The error of an answer that does not match says where and which rule, without text of the answer.
func TestInvalidAnswerSaysWhatDiffers(t *testing.T) {
	t.Parallel()
	wrong := lathetest.Text(`{"orders":["A-1"],"total":"canary","canary":1}`)
	a := newAgent(t, lathetest.NewModel(wrong, wrong), nil)
	_, _, err := agent.RunAs[summary](t.Context(), a, lathe.User("Sum up."))
	if err == nil || !strings.Contains(err.Error(), "/total must be integer, not string") || strings.Contains(err.Error(), "canary") {
		t.Error(err)
	}
	a = newAgent(t, lathetest.NewModel(lathetest.Text(`{"canary":"x"}`), lathetest.Text(`{"canary":"x"}`)), nil)
	_, _, err = agent.RunAs[map[string]int](t.Context(), a, lathe.User("Sum up."))
	if err == nil || !strings.Contains(err.Error(), "/* must be integer, not string") || strings.Contains(err.Error(), "canary") {
		t.Error(err)
	}
}

func TestRunAs(t *testing.T) {
	t.Parallel()
	const right = `{"orders":["A-1","B-2"],"total":42}`
	for name, tc := range map[string]struct {
		steps []lathetest.Step
		code  lathe.Code
	}{
		"at once":      {[]lathetest.Step{lathetest.Text(right)}, ""},
		"with a tool":  {[]lathetest.Step{lathetest.Call("weather", `{"city":"Oslo"}`), lathetest.Text(right)}, ""},
		"after repair": {[]lathetest.Step{lathetest.Text(`{"orders":[],"total":"42"}`), lathetest.Text(right)}, ""},
		"never":        {[]lathetest.Step{lathetest.Text("no JSON"), lathetest.Text("no JSON"), lathetest.Text("no JSON")}, "invalid_answer"},
		"failed":       {[]lathetest.Step{lathetest.Fail(400)}, lathe.CodeUpstream},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := lathetest.NewModel(tc.steps...)
			a := newAgent(t, model, &agent.Options{Tools: []lathe.Tool{weather()}})
			got, res, err := agent.RunAs[summary](t.Context(), a, lathe.User("Sum up."))
			if lathe.CodeOf(err) != tc.code || res == nil {
				t.Fatalf("%+v, %+v, %v", got, res, err)
			}
			if tc.code == "" && (got.Total != 42 || len(got.Orders) != 2) {
				t.Errorf("got %+v", got)
			}
			if f := string(model.Requests()[0].Sampling.ResponseFormat); !strings.Contains(f, `"strict":true`) || !strings.Contains(f, `"name":"summary"`) {
				t.Errorf("the format is %s", f)
			}
		})
	}
}

// A type without a JSON object is a member of one; a type with optional members is not strict.
func TestRunAsOtherTypes(t *testing.T) {
	t.Parallel()
	model := lathetest.NewModel(lathetest.Text(`{"value":["a","b"]}`), lathetest.Text(`{"name":"x"}`))
	a := newAgent(t, model, nil)
	if got, _, err := agent.RunAs[[]string](t.Context(), a, lathe.User("hi")); err != nil || len(got) != 2 {
		t.Errorf("%v, %v", got, err)
	}
	type optional struct {
		Name string `json:"name"`
		Age  int    `json:"age,omitempty"`
	}
	if got, _, err := agent.RunAs[optional](t.Context(), a, lathe.User("hi")); err != nil || got.Name != "x" {
		t.Errorf("%v, %v", got, err)
	}
	if f := string(model.Requests()[1].Sampling.ResponseFormat); strings.Contains(f, "strict") {
		t.Errorf("the format is %s", f)
	}
	if _, _, err := agent.RunAs[chan int](t.Context(), a, lathe.User("hi")); lathe.CodeOf(err) != lathe.CodeInvalidConfig {
		t.Error(err)
	}
}

func TestRunAsWaits(t *testing.T) {
	t.Parallel()
	calls := 0
	a := newAgent(t, lathetest.NewModel(lathetest.Call("refund", `{"order":"A-1"}`), lathetest.Text(`{"orders":["A-1"],"total":1}`)),
		&agent.Options{Tools: []lathe.Tool{refund(&calls)}})
	_, res, err := agent.RunAs[summary](t.Context(), a, lathe.User("Refund."))
	if !errors.Is(err, agent.ErrWaiting) || res == nil {
		t.Fatalf("%+v, %v", res, err)
	}
	waiting, err := a.Waiting(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Approve(t.Context(), waiting[0].Digest, "ann"); err != nil {
		t.Fatal(err)
	}
	if res, err = a.Wait(t.Context(), res.RunID); err != nil {
		t.Fatal(err)
	}
	if got, err := agent.ValueOf[summary](res); err != nil || got.Total != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

// Partial values grow, and the last one is complete.
func TestStreamAs(t *testing.T) {
	t.Parallel()
	text := `{"orders":["` + strings.Repeat(`order one","`, 40) + `last"],"total":42}`
	a := newAgent(t, lathetest.NewModel(lathetest.Text(text)), nil)
	var values []agent.Partial[summary]
	for p, err := range agent.StreamAs[summary](t.Context(), a, lathe.User("hi")) {
		if err != nil {
			t.Fatal(err)
		}
		if n := len(values); n > 0 && len(p.Value.Orders) < len(values[n-1].Value.Orders) {
			t.Errorf("value %d has fewer orders than the one before", n)
		}
		values = append(values, p)
	}
	last := values[len(values)-1]
	if len(values) < 5 || last.Result == nil || len(last.Value.Orders) != 41 || last.Value.Total != 42 || values[0].Result != nil {
		t.Errorf("%d values, the last %+v", len(values), last)
	}
	a = newAgent(t, lathetest.NewModel(lathetest.Text("no"), lathetest.Text("no"), lathetest.Text("no")), nil)
	var last2 error
	for p, err := range agent.StreamAs[summary](t.Context(), a, lathe.User("hi")) {
		if last2 = err; err != nil && p.Result == nil {
			t.Error("the error has no result")
		}
	}
	if lathe.CodeOf(last2) != "invalid_answer" {
		t.Error(last2)
	}
}
