package tool_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/digest"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

// offered returns the definitions of a run, and their hash.
func offered(r *tool.Runner, opts *tool.RunOptions) ([]*lathe.ToolSpec, string) {
	w := r.Begin(nil, opts)
	return w.Specs(), w.SpecsHash()
}

// Runs that offer the same tools share the list, also if runs that offer others come between them, up to a limit. A changed set has
// lists of its own.
func TestRunsShareTheListOfTheirTools(t *testing.T) {
	t.Parallel()
	const most = 16 // maxAdvertised
	var all []string
	for i := range most + 1 {
		all = append(all, fmt.Sprintf("t%02d", i))
	}
	set, err := tool.NewSet(from("a", all...)...)
	if err != nil {
		t.Fatal(err)
	}
	r, err := tool.NewRunner(set, &tool.Options{Policy: policy.AllowAll()})
	if err != nil {
		t.Fatal(err)
	}
	list := func(n int) ([]*lathe.ToolSpec, string) { return offered(r, &tool.RunOptions{Allow: all[:n]}) }
	first := map[int]**lathe.ToolSpec{}
	for round := range 2 {
		for n := 1; n <= most; n++ {
			specs, hash := list(n)
			if len(specs) != n || hash != digest.Tools(specs) {
				t.Fatalf("%d tools: %s, hash %s", n, names(specs), hash)
			}
			if round == 0 {
				first[n] = &specs[0]
			} else if first[n] != &specs[0] {
				t.Errorf("%d tools have another list in the second run", n)
			}
		}
	}
	list(most + 1) // the list that was made first is dropped
	if specs, _ := list(2); &specs[0] != first[2] {
		t.Error("one list more than the limit drops more than one")
	}
	if specs, hash := list(1); &specs[0] == first[1] || hash != digest.Tools(specs) {
		t.Error("more lists than the limit are kept")
	}
	if err := set.Replace("a", from("a", all...)); err != nil { // new definitions of the same names
		t.Fatal(err)
	}
	specs, hash := list(2)
	if now := set.Specs(); specs[0] != now[0] || specs[1] != now[1] || hash != digest.Tools(specs) {
		t.Error("a run after a change of the set has the former definitions")
	}
}

// The tools of a client are in the hash of its run only.
func TestToolsOfClientsAreInTheHashOfTheirRun(t *testing.T) {
	t.Parallel()
	set, err := tool.NewSet(from("a", "x", "y")...)
	if err != nil {
		t.Fatal(err)
	}
	r, err := tool.NewRunner(set, &tool.Options{Policy: policy.AllowAll()})
	if err != nil {
		t.Fatal(err)
	}
	_, own := offered(r, nil)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 20 {
				mine := []*lathe.ToolSpec{{Name: fmt.Sprintf("c%d", i), Owner: lathe.OwnerClient}}
				specs, hash := offered(r, &tool.RunOptions{ClientTools: mine})
				if len(specs) != 3 || specs[0] != mine[0] || hash != digest.Tools(specs) {
					t.Errorf("client %d: %s, %s", i, names(specs), hash)
				}
				if _, hash := offered(r, nil); hash != own {
					t.Errorf("without tools of a client: %s, want %s", hash, own)
				}
			}
		})
	}
	wg.Wait()
}

// An offeringPolicy counts how often it is asked about offering a tool.
type offeringPolicy struct {
	lathe.Policy
	asked int
}

func (p *offeringPolicy) Tool(run *lathe.RunInfo, spec *lathe.ToolSpec) lathe.Verdict {
	p.asked++
	return p.Policy.Tool(run, spec)
}

// The policy is asked once for each tool of a run, also if the run's options are checked.
func TestPolicyIsAskedOnceForEachTool(t *testing.T) {
	t.Parallel()
	set, err := tool.NewSet(from("a", "x", "y", "z")...)
	if err != nil {
		t.Fatal(err)
	}
	p := &offeringPolicy{Policy: policy.AllowAll()}
	r, err := tool.NewRunner(set, &tool.Options{Policy: p})
	if err != nil {
		t.Fatal(err)
	}
	opts := &tool.RunOptions{Limits: &lathe.Limits{MaxTools: 2}}
	w := r.Begin(nil, opts)
	if len(w.Specs()) != 3 || w.SpecsHash() == digest.NoTools || w.Check(opts) == nil || len(w.Withheld()) != 0 {
		t.Errorf("offered: %s; check: %v", names(w.Specs()), w.Check(opts))
	}
	if p.asked != 3 {
		t.Errorf("the policy was asked %d times about 3 tools", p.asked)
	}
}
