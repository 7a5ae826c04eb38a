package main

import (
	"bytes"
	"net/http/httptest"
	"testing"

	"github.com/lathe-run/lathe/sim"
)

// The simulated model stands in for the server, over HTTP.
func TestRun(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(sim.New(nil).Handler())
	defer server.Close()
	env := map[string]string{"LATHE_BASE_URL": server.URL, "LATHE_MODEL": "sim/demo", "LATHE_KEY": "k"}
	var out bytes.Buffer
	if err := run(t.Context(), &out, func(name string) string { return env[name] }, `Add a note with the text "buy milk".`); err != nil {
		t.Fatal(err)
	}
	want := "Let me use add_note.\n[approved: add_note {\"text\":\"buy milk\"}]\n[note: buy milk]\nadd_note says: saved is true.\n"
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A server that is not there is an error, not an answer.
func TestRunWithoutServer(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(sim.New(nil).Handler())
	server.Close()
	env := map[string]string{"LATHE_BASE_URL": server.URL}
	var out bytes.Buffer
	if err := run(t.Context(), &out, func(name string) string { return env[name] }, "Hello."); err == nil {
		t.Errorf("no error, and %q", out.String())
	}
}
