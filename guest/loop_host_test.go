package guest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/guest"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/sim"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/builtin"
)

// plainTool returns "ok".
type plainTool struct{ spec lathe.ToolSpec }

func (p *plainTool) Spec() *lathe.ToolSpec { return &p.spec }
func (p *plainTool) Call(context.Context, json.RawMessage) (*lathe.Output, error) {
	return &lathe.Output{Data: []byte(`"ok"`)}, nil
}

func newPlainTool(name, origin string) *plainTool {
	return &plainTool{lathe.ToolSpec{Name: name, Origin: origin, Allowlist: []string{"*"}, Effect: lathe.ReadOnly, Schema: []byte(`{"type":"object"}`)}}
}

func newSet(t testing.TB, tools ...lathe.Tool) *tool.Set {
	t.Helper()
	set, err := tool.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// autoSend is a send that executes calls.
func autoSend(functions ...lathe.Tool) *guest.Request {
	return &guest.Request{Messages: []lathe.Message{lathe.User("go")}, Auto: true, Tools: functions, Limits: lathe.Limits{MaxIterations: 4, MaxToolCalls: 4, MaxOutputBytes: 1 << 10}}
}

// A program outside the module runs a guest with a model, tools and a policy of its own: the guest's function is
// offered to the model and called, without a policy that is written for it.
func ExampleNewHost() {
	tools, err := tool.NewSet(builtin.Tools(nil)...)
	if err != nil {
		fmt.Println(err)
		return
	}
	model := sim.New(nil).Model("") // or provider.OpenAI("gpt-4o-mini", …)
	host, err := guest.NewHost(model, &guest.HostOptions{Tools: tools, Runner: tool.Options{Policy: policy.Default()}})
	if err != nil {
		fmt.Println(err)
		return
	}
	rt, err := guest.New(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rt.Close() //nolint:errcheck // what it returns is the engine's
	wasm, err := os.ReadFile("testdata/sum.wasm")
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	program, err := rt.Compile(ctx, wasm, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer program.Close() //nolint:errcheck // as above
	var printed bytes.Buffer
	outcome := program.Run(ctx, host, &guest.RunOptions{Stdout: &printed})
	var answer struct {
		Choices []struct{ Message struct{ Content string } }
	}
	if err := json.NewDecoder(&printed).Decode(&answer); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(outcome.Reason, answer.Choices[0].Message.Content)
	// Output:
	// answered sum says: sum is 42.
}

// Every send may call the functions of the guest and the tools that Allow names. A tool of an MCP server that is not
// named there needs a session that has enabled the server. Nothing else is offered.
func TestHostOffersWhatIsAllowed(t *testing.T) {
	t.Parallel()
	set := newSet(t, newPlainTool("notes__read", "mcp:notes"), newPlainTool("calculator", "builtin"))
	f := newPlainTool("f", "guest")
	f.spec.Effect = 0
	notes := &guest.MCP{Servers: []string{"notes"}}
	for name, c := range map[string]struct {
		allow     []string
		mcp       *guest.MCP
		functions []lathe.Tool
		want      []string
	}{
		"nothing allowed": {[]string{}, nil, nil, nil},
		"a name":          {[]string{"calculator"}, &guest.MCP{Servers: []string{"other"}}, []lathe.Tool{f}, []string{"calculator", "f"}},
		"a server":        {[]string{"calculator"}, notes, nil, []string{"calculator", "notes__read"}},
		"a server's tool": {[]string{"notes__read"}, nil, nil, []string{"notes__read"}},
		"nil":             {nil, nil, []lathe.Tool{f}, []string{"calculator", "f"}},
		"nil and server":  {nil, notes, nil, []string{"calculator", "notes__read"}},
	} {
		model := asks()
		h, err := guest.NewHost(model, &guest.HostOptions{Tools: set, Allow: c.allow})
		if err != nil {
			t.Fatal(err)
		}
		req := autoSend(c.functions...)
		req.MCP = c.mcp
		if _, err := h.Send(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, spec := range model.seen[0].Tools {
			got = append(got, spec.Name)
		}
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: offered %q, want %q", name, got, c.want)
		}
	}
}

// results are the results of the calls of a run.
func results(reply *guest.Reply) string {
	var all []string
	for _, m := range reply.Result.History {
		for _, p := range m.Parts {
			if r, ok := p.(lathe.ToolResult); ok {
				all = append(all, r.Content)
			}
		}
	}
	return strings.Join(all, " ")
}

// sending is a function of a guest that sends again.
type sending struct {
	plainTool
	send func(ctx context.Context)
}

func (s *sending) Call(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
	s.send(ctx)
	return &lathe.Output{Data: []byte(`"sent"`)}, nil
}

// A function that sends does not take the tools of the send that called it away, and a send does not see the functions
// of another: neither one inside the other nor side by side.
func TestHostKeepsSendsApart(t *testing.T) {
	t.Parallel()
	set := newSet(t, newPlainTool("calculator", "builtin"))
	turns := asks("outer", "inner", "again")
	h, err := guest.NewHost(turns, &guest.HostOptions{Tools: set, Runner: tool.Options{Limits: lathe.Limits{MaxDepth: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	outer := &sending{plainTool: *newPlainTool("outer", "guest")}
	outer.send = func(ctx context.Context) {
		turns.mu.Lock()
		turns.turns = turns.turns[:1] // the inner run calls inner and answers
		turns.mu.Unlock()
		if _, err := h.Send(ctx, autoSend(newPlainTool("inner", "guest"))); err != nil {
			t.Error(err)
		}
		turns.mu.Lock()
		turns.turns = asks("again").turns
		turns.mu.Unlock()
	}
	reply, err := h.Send(t.Context(), autoSend(outer, newPlainTool("again", "guest")))
	if err != nil {
		t.Fatal(err)
	}
	if got := results(reply); got != "sent ok" {
		t.Errorf("ended %s with the results %s: %v", reply.Result.Reason, got, reply.Result.Err)
	}
	var offered []string
	for _, req := range turns.seen {
		var names []string
		for _, spec := range req.Tools {
			names = append(names, spec.Name)
		}
		slices.Sort(names)
		offered = append(offered, strings.Join(names, "+"))
	}
	if want := []string{"again+calculator+outer", "calculator+inner", "calculator+inner", "again+calculator+outer", "again+calculator+outer"}; !slices.Equal(offered, want) {
		t.Errorf("offered %q, want %q", offered, want)
	}
	if n := len(set.Specs()); n != 1 {
		t.Errorf("%d tools are left in the set", n)
	}

	h, err = guest.NewHost(asks(), &guest.HostOptions{Tools: set, Choose: func(string) (*guest.Backend, error) { return &guest.Backend{Model: asks("f")}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	var sends sync.WaitGroup
	for range 8 {
		sends.Go(func() {
			if reply, err := h.Send(t.Context(), autoSend(newPlainTool("f", "guest"))); err != nil || results(reply) != "ok" {
				t.Errorf("%+v: %v", reply, err)
			}
		})
	}
	sends.Wait()
}

// A function with the name of a tool makes a send that is no run; the guest reads why.
func TestHostRefusesAFunctionWithTheNameOfATool(t *testing.T) {
	t.Parallel()
	h, err := guest.NewHost(asks(), &guest.HostOptions{Tools: newSet(t, newPlainTool("calculator", "builtin"))})
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.Send(t.Context(), autoSend(newPlainTool("calculator", "guest")))
	if lathe.CodeOf(err) != lathe.CodeInvalidRequest || !strings.Contains(err.Error(), "the name is taken") {
		t.Errorf("%v", err)
	}
}

// The policy judges functions as tools that only read, and a rule for the name of one decides.
func TestHostPolicyJudgesFunctions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policy lathe.Policy
		want   int
	}{
		"default": {nil, 1},
		"named":   {policy.Tools{Deny: []string{"f"}, Else: policy.Default()}, 0},
	} {
		f := newPlainTool("f", "guest")
		f.spec.Effect = 0
		writes := newPlainTool("writes", "builtin")
		writes.spec.Effect = 0
		model := asks()
		h, err := guest.NewHost(model, &guest.HostOptions{Tools: newSet(t, writes), Runner: tool.Options{Policy: c.policy}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Send(t.Context(), autoSend(f)); err != nil {
			t.Fatal(err)
		}
		if got := len(model.seen[0].Tools); got != c.want {
			t.Errorf("%s: %d tools are offered, want %d", name, got, c.want)
		}
		if f.spec.Effect != 0 {
			t.Errorf("%s: the definition of the function was changed", name)
		}
	}
}

// described is a model with a name.
type described struct{ *script }

func (described) Describe() lathe.ModelInfo {
	return lathe.ModelInfo{Provider: "acme", Model: "acme-1"}
}

// A reply names the model that answered: as Choose says, else as the model describes itself.
func TestHostNamesTheModelThatAnswers(t *testing.T) {
	t.Parallel()
	asked := ""
	h, err := guest.NewHost(described{asks()}, &guest.HostOptions{Choose: func(name string) (*guest.Backend, error) {
		asked = name
		switch name {
		case "other":
			return &guest.Backend{Model: asks(), Name: "there", ModelName: "other-2"}, nil
		case "half":
			return &guest.Backend{Model: described{asks()}, ModelName: "half-3"}, nil
		case "broken":
			return &guest.Backend{}, nil
		case "gone":
			return nil, errors.New("gone")
		}
		return nil, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"": "acme acme-1", "other": "there other-2", "half": "acme half-3", "broken": "", "gone": ""} {
		req := autoSend()
		req.Model = name
		reply, err := h.Send(t.Context(), req)
		if want == "" {
			if err == nil {
				t.Errorf("%q: no error", name)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := reply.Backend + " " + reply.Model; got != want || asked != name {
			t.Errorf("%q: %q answered, want %q; Choose was asked for %q", name, got, want, asked)
		}
	}
}

// What a guest sets is what the model is asked with, before what the operator set.
func TestHostSendsParameters(t *testing.T) {
	t.Parallel()
	model := asks()
	h, err := guest.NewHost(model, &guest.HostOptions{Choose: func(string) (*guest.Backend, error) {
		return &guest.Backend{Model: model, Overrides: []lathe.Member{{Name: "top_k", Value: []byte(`1`)}, {Name: "other", Value: []byte(`2`)}}}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	req := autoSend()
	req.ResponseFormat = []byte(`{"type":"text"}`)
	req.Overrides = []lathe.Member{{Name: "max_tokens", Value: []byte(`7`)}, {Name: "seed", Value: []byte(`"x"`)}, {Name: "stop"}, {Name: "temperature", Value: []byte(`0.5`)}, {Name: "top_k", Value: []byte(`4`)}}
	if _, err := h.Send(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	sent := model.seen[0]
	s := sent.Sampling
	if s.MaxTokens == nil || *s.MaxTokens != 7 || s.Temperature == nil || *s.Temperature != 0.5 || s.Seed != nil || !bytes.Equal(s.ResponseFormat, req.ResponseFormat) {
		t.Errorf("sampling: %+v", s)
	}
	var got []string
	for _, m := range sent.Overrides {
		got = append(got, m.Name+"="+string(m.Value))
	}
	if want := []string{`seed="x"`, "stop=", "top_k=4", "other=2"}; !slices.Equal(got, want) {
		t.Errorf("overrides %q, want %q", got, want)
	}
}

// A host with an engine names the runs as the engine does, and one without an engine gives each run an id.
func TestHostNamesRuns(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]guest.Engine{"engine": newEngine(t, &engine.Options{NewID: func(prefix string) string { return prefix + "7" }}), "none": nil} {
		h, err := guest.NewHost(asks(), &guest.HostOptions{Engine: e})
		if err != nil {
			t.Fatal(err)
		}
		reply, err := h.Send(t.Context(), autoSend())
		if err != nil {
			t.Fatal(err)
		}
		if e != nil && reply.RunID != "run_7" || e == nil && len(reply.RunID) < 20 {
			t.Errorf("%s: the run is %q", name, reply.RunID)
		}
	}
}

// NewHost returns an error for what cannot work.
func TestNewHostRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		model lathe.Model
		opts  *guest.HostOptions
	}{
		"no model":     {nil, nil},
		"no such tool": {asks(), &guest.HostOptions{Allow: []string{"calculator"}}},
		"a hash mode":  {asks(), &guest.HostOptions{Runner: tool.Options{HashMode: "md5"}}},
	} {
		if h, err := guest.NewHost(c.model, c.opts); err == nil || h != nil {
			t.Errorf("%s: no error", name)
		}
	}
}
