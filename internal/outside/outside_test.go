package outside

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/lathetest"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/sim"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/builtin"
)

func TestCounterIsAModel(t *testing.T) {
	lathetest.TestModel(t, func() lathe.Model { return &Counter{Model: sim.New(nil).Model("sim/demo")} })
	lathetest.TestModelError(t, func() lathe.Model { return &Counter{Model: lathetest.NewModel(lathetest.Fail(500))} })
}

func TestCounterKeepsTheAbilitiesOfItsModel(t *testing.T) {
	model, err := provider.OpenAI("gpt", &provider.Options{BaseURL: "http://127.0.0.1:1/v1"})
	if err != nil {
		t.Fatal(err)
	}
	c := &Counter{Model: model}
	if _, ok := lathe.ModelAs[loop.TokenCounter](c); !ok {
		t.Error("the provider's count of tokens is not found through the decorator")
	}
	if got := c.Describe(); got != model.Describe() {
		t.Errorf("the decorator describes %+v", got)
	}
}

func TestCounterCounts(t *testing.T) {
	c := &Counter{Model: lathetest.NewModel(lathetest.Text("21 °C in Oslo"))}
	if rec := lathetest.Run(t, c, "Weather?", nil); rec.Err != nil || c.Characters.Load() != 13 {
		t.Errorf("%d characters: %v", c.Characters.Load(), rec.Err)
	}
}

func TestMapStoreIsAStore(t *testing.T) {
	lathetest.TestStore(t, func() store.Store { return &MapStore{} })
}

func weatherServer(t *testing.T) string {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Key") != "key-of-the-weather" || r.URL.Path != "/cities/Oslo/weather" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"temperature":21,"station":"internal-7"}`)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestWeatherIsATool(t *testing.T) {
	address := weatherServer(t)
	lathetest.TestTool(t, func() lathe.Tool {
		w, err := Weather(address, secret.New("key-of-the-weather"))
		if err != nil {
			t.Fatal(err)
		}
		return w
	}, &lathetest.Arguments{Good: []string{`{"city":"Oslo"}`}, Bad: []string{`{}`, `{"city":7}`}})
}

func TestWeatherShowsTheModelAllowedFieldsOnly(t *testing.T) {
	w, err := Weather(weatherServer(t), secret.New("key-of-the-weather"))
	if err != nil {
		t.Fatal(err)
	}
	model := lathetest.NewModel(lathetest.Call("get_weather", `{"city":"Oslo"}`), lathetest.Text("It is 21 °C."))
	rec := lathetest.Run(t, model, "Weather?", &lathetest.Options{Tools: []lathe.Tool{w}})
	res := lathetest.Only[*event.ToolCallResult](rec.Events)
	if len(res) != 1 || !strings.Contains(res[0].Result, "21") || strings.Contains(res[0].Result, "internal-7") {
		t.Errorf("results %+v", res)
	}
}

type note struct {
	Text string `json:"text"`
}

func notes(written *[]string) lathe.Tool {
	return tool.Func("write_note", "Writes a note.", func(_ context.Context, n note) (string, error) {
		*written = append(*written, n.Text)
		return "written", nil
	}, &tool.FuncOptions{Effect: lathe.Writes, Show: []string{"*"}})
}

func TestGateAsksTheReviewer(t *testing.T) {
	for _, c := range []struct {
		reviewer Reviewer
		gate     Gate
		want     lathe.Code
	}{
		{Reviewer{"write_note"}, Gate{}, ""},
		{Reviewer{}, Gate{}, lathe.CodeApprovalDenied},
		{Reviewer{"write_note"}, Gate{Closed: []string{"write_note"}}, lathe.CodePolicyDenied},
	} {
		var written []string
		model := lathetest.NewModel(lathetest.Call("write_note", `{"text":"milk"}`), lathetest.Text("Done."))
		rec := lathetest.Run(t, model, "Note milk.", &lathetest.Options{Tools: []lathe.Tool{notes(&written)},
			Runner: tool.Options{Policy: c.gate, Approver: c.reviewer}})
		res := lathetest.Only[*event.ToolCallResult](rec.Events)
		if len(res) != 1 || res[0].ErrorType != c.want || (len(written) == 1) != (c.want == "") {
			t.Errorf("%+v: results %+v, notes %q", c, res, written)
		}
	}
}

func TestServerRunsToolsAndStoresRuns(t *testing.T) {
	set, err := tool.NewSet(builtin.Tools(nil)...)
	if err != nil {
		t.Fatal(err)
	}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: Gate{}})
	if err != nil {
		t.Fatal(err)
	}
	runs := &MapStore{}
	h, stop, err := Server("demo", sim.New(nil).Model("sim/demo"), runner, runs)
	if err != nil {
		t.Fatal(err)
	}
	if answer := ask(t, h, "demo", "What is 7 + 35?"); !strings.Contains(answer, "7 + 35 = 42.") {
		t.Errorf("the answer is %s", answer)
	}
	if err := stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(runs.runs) != 1 {
		t.Errorf("the store has %d runs, want 1", len(runs.runs))
	}
}

func TestAppServesFurtherTools(t *testing.T) {
	var written []string
	a, err := App(notes(&written), tool.Func("moon", "Returns the phase of the moon.", func(context.Context, struct{}) (string, error) {
		return "waning", nil
	}, &tool.FuncOptions{Effect: lathe.ReadOnly, Show: []string{"*"}}))
	if err != nil {
		t.Fatal(err)
	}
	if answer := ask(t, a.Handler(), "sim/demo", "What is the phase of the moon?"); !strings.Contains(answer, "waning") {
		t.Errorf("the answer is %s", answer)
	}
	if err := a.Close(); err != nil || len(written) != 0 {
		t.Errorf("notes %q: %v", written, err)
	}
}

// ask returns the body of a chat completion.
func ask(t *testing.T, h http.Handler, model, prompt string) string {
	t.Helper()
	srv := httptest.NewServer(h)
	defer srv.Close()
	resp, err := http.Post(srv.URL+"/v1/chat/completions", "application/json",
		strings.NewReader(`{"model":"`+model+`","messages":[{"role":"user","content":"`+prompt+`"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("status %d, body %s: %v", resp.StatusCode, body, err)
	}
	return string(body)
}
