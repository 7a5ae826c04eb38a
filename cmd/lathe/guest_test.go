package main

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/config"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/guest"
	"github.com/lathe-run/lathe/sim"
	"github.com/lathe-run/lathe/tool"
)

// plainTool is a tool of some origin that answers "ok".
type plainTool struct{ spec lathe.ToolSpec }

func (p *plainTool) Spec() *lathe.ToolSpec { return &p.spec }
func (p *plainTool) Call(context.Context, json.RawMessage) (*lathe.Output, error) {
	return &lathe.Output{Data: []byte(`"ok"`)}, nil
}

func newPlainTool(name, origin string) *plainTool {
	return &plainTool{lathe.ToolSpec{Name: name, Origin: origin, Allowlist: []string{"*"}}}
}

func testGuestHost(t *testing.T, tools ...lathe.Tool) *guestHost {
	t.Helper()
	cfg, err := config.Load("", nil)
	if err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	h := newGuestHost(cfg, set, nil, nil, nil)
	h.engine = engine.New(nil)
	h.note = func(string) {}
	h.model = func(string) (*config.Model, lathe.Model, error) {
		entry, err := cfg.Model("")
		return entry, sim.New(nil).Model(""), err
	}
	return h
}

// What a send may use are the guest's functions and what it was given, and nothing when that is nothing.
func TestGuestHostAllowsWhatWasGiven(t *testing.T) {
	t.Parallel()
	h := testGuestHost(t, newPlainTool("notes__read", "mcp:notes"), newPlainTool("calculator", "builtin"))
	if got := h.allowed(&guest.Request{Auto: true}); got == nil || len(got) != 0 {
		t.Errorf("nothing given: %q", got)
	}
	h.given = []string{"calculator"}
	got := h.allowed(&guest.Request{Auto: true, Tools: []lathe.Tool{newPlainTool("f", guest.Origin)}, MCP: &guest.MCP{Servers: []string{"other"}}})
	if want := []string{"calculator", "f"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	got = h.allowed(&guest.Request{Auto: true, MCP: &guest.MCP{Servers: []string{"notes"}}})
	if want := []string{"calculator", "notes__read"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A function that sends has its own functions as tools meanwhile, and the others are back afterwards.
func TestGuestHostRestoresFunctions(t *testing.T) {
	t.Parallel()
	h := testGuestHost(t, newPlainTool("calculator", "builtin"))
	names := func() string {
		var names []string
		for _, spec := range h.set.Specs() {
			names = append(names, spec.Name)
		}
		return strings.Join(names, " ")
	}
	outer, err := h.enter([]lathe.Tool{newPlainTool("outer", guest.Origin)})
	if err != nil {
		t.Fatal(err)
	}
	inner, err := h.enter([]lathe.Tool{newPlainTool("inner", guest.Origin)})
	if err != nil {
		t.Fatal(err)
	}
	if got := names(); got != "calculator inner" {
		t.Errorf("within: %s", got)
	}
	if _, err := h.enter([]lathe.Tool{newPlainTool("calculator", guest.Origin)}); err == nil {
		t.Error("a function took the name of a tool that the guest was given")
	}
	inner()
	if got := names(); got != "calculator outer" {
		t.Errorf("afterwards: %s", got)
	}
	outer()
	if got := names(); got != "calculator" {
		t.Errorf("at the end: %s", got)
	}
}

// What is kept of the models that a guest asks for is short, however long their names are, and it is said once.
func TestGuestHostKeepsLittleOfModelNames(t *testing.T) {
	t.Parallel()
	h := testGuestHost(t)
	var said []string
	h.note = func(text string) { said = append(said, text) }
	for _, name := range []string{"some", strings.Repeat("x", 1<<20), strings.Repeat("x", 1<<20) + "y", "some", ""} {
		if _, err := h.choose(name); err != nil {
			t.Fatal(err)
		}
	}
	kept := 0
	for name := range h.models {
		kept += len(name)
	}
	for name := range h.missed {
		kept += len(name)
	}
	if len(said) != 2 || kept > 200 {
		t.Errorf("%d notes, %d bytes are kept", len(said), kept)
	}
}

// What a guest sets is what the model is asked with, typed where Lathe knows it.
func TestGuestHostSampling(t *testing.T) {
	t.Parallel()
	req := &guest.Request{ResponseFormat: []byte(`{"type":"text"}`), Overrides: []lathe.Member{
		{Name: "max_tokens", Value: []byte(`7`)}, {Name: "seed", Value: []byte(`"x"`)}, {Name: "temperature", Value: []byte(`0.5`)}, {Name: "top_k", Value: []byte(`4`)}}}
	s, rest := samplingOf(req)
	if s.MaxTokens == nil || *s.MaxTokens != 7 || s.Temperature == nil || *s.Temperature != 0.5 || s.Seed != nil || !bytes.Equal(s.ResponseFormat, req.ResponseFormat) {
		t.Errorf("sampling: %+v", s)
	}
	var names []string
	for _, m := range joined([]lathe.Member{{Name: "top_k"}, {Name: "other"}}, rest) {
		names = append(names, m.Name+"="+string(m.Value))
	}
	if want := []string{`seed="x"`, "top_k=4", "other="}; !slices.Equal(names, want) {
		t.Errorf("overrides %q, want %q", names, want)
	}
}
