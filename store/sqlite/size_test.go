package sqlite_test

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/agent"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/lathetest"
	"github.com/lathe-run/lathe/tool"
)

// A run of three small calls has at most 5 KB of events in the file, and they are read as they were published, from any of them on.
func TestShortRunIsSmall(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	s := open(t, path)
	weather := tool.Func("weather", "Returns the weather of a city.", func(_ context.Context, in struct {
		City string `json:"city"`
	}) (string, error) {
		return "dry in " + in.City, nil
	}, &tool.FuncOptions{Effect: lathe.ReadOnly})
	var calls lathetest.Step
	for _, city := range []string{"Oslo", "Bergen", "Bodø"} {
		calls.Calls = append(calls.Calls, lathe.ToolCall{Name: "weather", Arguments: `{"city":"` + city + `"}`})
	}
	a, err := agent.New(lathetest.NewModel(calls, lathetest.Text("It is dry.")), &agent.Options{Tools: []lathe.Tool{weather}, Store: s})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Close(t.Context()) }()
	var published []string
	run := ""
	for e, err := range a.Stream(t.Context(), lathe.User("What is the weather?")) {
		if err != nil {
			t.Fatal(err)
		}
		if run = e.RunID; e.ID > 0 {
			published = append(published, text(t, &e))
		}
	}
	for after := range published {
		var got []string
		for e, err := range s.Read(t.Context(), run, int64(after)) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, text(t, &e))
		}
		if !slices.Equal(got, published[after:]) {
			t.Errorf("after event %d the store has\n%q\nand published was\n%q", after, got, published[after:])
		}
	}
	for row := range query(t, path, "SELECT count(*), sum(length(body)) FROM event") {
		if row[0] != int64(18) || row[1].(int64) > 5_000 {
			t.Errorf("%v events of %v bytes, want 18 of at most 5000", row[0], row[1])
		}
	}
}

// text returns the JSON of an event with its content.
func text(t *testing.T, e *event.Event) string {
	t.Helper()
	b, err := e.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
