package tool_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

// denies is a policy that denies one tool, another one after each call of deny.
type denies struct {
	policy.Effects
	tool atomic.Pointer[string]
}

func (p *denies) Tool(_ *lathe.RunInfo, spec *lathe.ToolSpec) lathe.Verdict {
	if spec.Name == *p.tool.Load() {
		return lathe.Verdict{Rule: "denied"}
	}
	return lathe.Verdict{Decision: lathe.Allow}
}

func (p *denies) deny(tool string) { p.tool.Store(&tool) }

// The list of a run follows the principal, what the run allows, the policy and the set as they are when the run begins.
func TestToolsAreOfferedAsThePolicySaysNow(t *testing.T) {
	t.Parallel()
	tools := from("a", "x", "y", "z")
	tools[2].(*sourced).spec.Principals = []string{"ann"}
	set, err := tool.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	p := &denies{}
	p.deny("y")
	r, err := tool.NewRunner(set, &tool.Options{Policy: p})
	if err != nil {
		t.Fatal(err)
	}
	held := func(name string) []event.WithheldTool {
		return []event.WithheldTool{{Tool: name, Reason: event.WithheldPolicy, Rule: "denied"}}
	}
	for i, tt := range []struct {
		before    func()
		principal string
		opts      *tool.RunOptions
		want      string
		withheld  []event.WithheldTool
	}{
		{nil, "ann", nil, "x z", held("y")},
		{nil, "ann", nil, "x z", held("y")},
		{nil, "bob", nil, "x", held("y")},
		{nil, "bob", &tool.RunOptions{Allow: []string{"z"}}, "", nil},
		{nil, "ann", &tool.RunOptions{Allow: []string{"y", "z"}}, "z", held("y")},
		{nil, "ann", &tool.RunOptions{ClientTools: []*lathe.ToolSpec{{Name: "mine", Owner: lathe.OwnerClient}}}, "mine x z", held("y")},
		{func() { p.deny("x") }, "ann", nil, "y z", held("x")},
		{nil, "ann", nil, "y z", held("x")},
		{func() {
			if err := set.Replace("a", append(tools, from("a", "w")...)); err != nil {
				t.Error(err)
			}
		}, "ann", nil, "w y z", held("x")},
		{nil, "bob", nil, "w y", held("x")},
	} {
		if tt.before != nil {
			tt.before()
		}
		w := r.Begin(&lathe.RunInfo{Principal: tt.principal}, tt.opts)
		if got, withheld := names(w.Specs()), w.Withheld(); got != tt.want || !slices.Equal(withheld, tt.withheld) {
			t.Errorf("%d: offered %q, withheld %v, want %q, %v", i, got, withheld, tt.want, tt.withheld)
		}
	}
}

// Runs at the same time as changes of the policy never offer a tool that was denied before they began.
func TestPolicyThatChangesIsFollowedAtOnce(t *testing.T) {
	t.Parallel()
	set, err := tool.NewSet(from("a", "x", "y")...)
	if err != nil {
		t.Fatal(err)
	}
	p := &denies{}
	p.deny("")
	r, err := tool.NewRunner(set, &tool.Options{Policy: p})
	if err != nil {
		t.Fatal(err)
	}
	var others sync.WaitGroup
	stop := make(chan struct{})
	for range 3 {
		others.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					offered(r, nil)
				}
			}
		})
	}
	for i := range 500 {
		denied, want := "x", "y"
		if i%2 == 1 {
			denied, want = "y", "x"
		}
		p.deny(denied)
		if specs, _ := offered(r, nil); names(specs) != want {
			t.Errorf("change %d: offered %s, want %s", i, names(specs), want)
			break
		}
	}
	close(stop)
	others.Wait()
}

// embedding decides about tools by the run, unlike the policy that it embeds.
type embedding struct{ policy.Effects }

func (embedding) Tool(run *lathe.RunInfo, spec *lathe.ToolSpec) lathe.Verdict {
	if run.Principal == "bob" {
		return lathe.Verdict{}
	}
	return lathe.Verdict{Decision: lathe.Allow}
}

// A policy that decides by the run is asked in each, also if others call it.
func TestPolicyThatEmbedsAnotherIsAskedInEachRun(t *testing.T) {
	t.Parallel()
	set, err := tool.NewSet(from("a", "x")...)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []lathe.Policy{embedding{}, policy.All(policy.AllowAll(), embedding{}), policy.Tools{Else: embedding{}}} {
		r, err := tool.NewRunner(set, &tool.Options{Policy: p})
		if err != nil {
			t.Fatal(err)
		}
		for _, who := range []string{"ann", "bob", "ann"} {
			w := r.Begin(&lathe.RunInfo{Principal: who}, nil)
			if got, want := names(w.Specs()), map[string]string{"ann": "x"}[who]; got != want {
				t.Errorf("%T: %s is offered %q, want %q", p, who, got, want)
			}
		}
	}
}
