package engine_test

import (
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testkit/enginetest"
)

// F3: whatever step takes longer than a process may rely on its claim, longer than the claim holds, or
// longer than a store may take: the run goes on, and what came to it is heeded.
func TestF3_EachStepMayBeSlow(t *testing.T) {
	t.Parallel()
	for _, long := range []time.Duration{9 * time.Second, 25 * time.Second} { // of a lease of 10 s
		for _, name := range []string{"asks in the middle", "the client's"} {
			t.Run(long.String()+" "+name, func(t *testing.T) {
				t.Parallel()
				at(t, named(name), func(s *enginetest.Sim, _ *enginetest.Stop) { s.Pass(long) }, nil, func(k int, h *enginetest.History) {
					if end := ended(h); end != lathe.ReasonAnswered {
						t.Errorf("stop %d: the run ends %s", k, end)
					}
				})
			})
		}
	}
}

// F14: a result that is there before its call is heeded when the call waits for it.
func TestF14_ResultsThatComeEarly(t *testing.T) {
	t.Parallel()
	script := &enginetest.Script{Name: "early", Turns: []enginetest.Turn{enginetest.Ask(1, enginetest.Mine), enginetest.Ask(2, enginetest.Pay, enginetest.Mine), enginetest.Reply("done")}}
	at(t, script, func(s *enginetest.Sim, _ *enginetest.Stop) {
		s.Results(map[string]lathe.Output{"c1_0": {Data: []byte(`"one"`)}, "c2_1": {Data: []byte(`"two"`)}})
	}, nil, nil)
}
