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

// versioned is a policy that denies one tool, by a version.
type versioned struct {
	policy.Effects
	now   atomic.Pointer[verdicts]
	asked atomic.Int64
}

type verdicts struct {
	version uint64
	deny    string
}

func (p *versioned) Tool(_ *lathe.RunInfo, spec *lathe.ToolSpec) lathe.Verdict {
	p.asked.Add(1)
	if spec.Name == p.now.Load().deny {
		return lathe.Verdict{Rule: "denied"}
	}
	return lathe.Verdict{Decision: lathe.Allow}
}

func (p *versioned) ToolVersion(lathe.Policy) (uint64, bool) { return p.now.Load().version, true }

// A policy with a version is asked once about each tool, for runs of all principals, until its version or the set changes.
func TestPolicyWithAVersionIsAskedOnceAboutATool(t *testing.T) {
	t.Parallel()
	tools := from("a", "x", "y", "z")
	tools[2].(*sourced).spec.Principals = []string{"ann"}
	set, err := tool.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	p := &versioned{}
	p.now.Store(&verdicts{1, "y"})
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
		asked     int64
	}{
		{nil, "ann", nil, "x z", held("y"), 3},
		{nil, "ann", nil, "x z", held("y"), 3},
		{nil, "bob", nil, "x", held("y"), 3},
		{nil, "bob", &tool.RunOptions{Allow: []string{"z"}}, "", nil, 3},
		{nil, "ann", &tool.RunOptions{Allow: []string{"y", "z"}}, "z", held("y"), 3},
		{nil, "ann", &tool.RunOptions{ClientTools: []*lathe.ToolSpec{{Name: "mine", Owner: lathe.OwnerClient}}}, "mine x z", held("y"), 3},
		{func() { p.now.Store(&verdicts{2, "x"}) }, "ann", nil, "y z", held("x"), 6},
		{nil, "ann", nil, "y z", held("x"), 6},
		{func() {
			if err := set.Replace("a", append(tools, from("a", "w")...)); err != nil {
				t.Error(err)
			}
		}, "ann", nil, "w y z", held("x"), 10},
		{nil, "bob", nil, "w y", held("x"), 10},
	} {
		if tt.before != nil {
			tt.before()
		}
		w := r.Begin(&lathe.RunInfo{Principal: tt.principal}, tt.opts)
		if got, withheld := names(w.Specs()), w.Withheld(); got != tt.want || !slices.Equal(withheld, tt.withheld) || p.asked.Load() != tt.asked {
			t.Errorf("%d: offered %q, withheld %v after %d questions, want %q, %v after %d", i, got, withheld, p.asked.Load(), tt.want, tt.withheld, tt.asked)
		}
		w.Close()
	}
}

// Runs at the same time as changes of the policy never offer a tool that was denied before they began.
func TestPolicyThatChangesItsVersionIsFollowedAtOnce(t *testing.T) {
	t.Parallel()
	set, err := tool.NewSet(from("a", "x", "y")...)
	if err != nil {
		t.Fatal(err)
	}
	p := &versioned{}
	p.now.Store(&verdicts{})
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
	for i := range uint64(500) {
		want := "y"
		if p.now.Store(&verdicts{2*i + 1, "x"}); i%2 == 1 {
			p.now.Store(&verdicts{2*i + 2, "y"})
			want = "x"
		}
		if specs, _ := offered(r, nil); names(specs) != want {
			t.Errorf("version %d: offered %s, want %s", i, names(specs), want)
			break
		}
	}
	close(stop)
	others.Wait()
}

// embedding decides about tools by the run, although the policy that it embeds has a version.
type embedding struct{ policy.Effects }

func (embedding) Tool(run *lathe.RunInfo, spec *lathe.ToolSpec) lathe.Verdict {
	if run.Principal == "bob" {
		return lathe.Verdict{}
	}
	return lathe.Verdict{Decision: lathe.Allow}
}

// A policy that embeds one with a version is asked in each run.
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
			w.Close()
		}
	}
}
