package mcptool

import (
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe"
)

// A server that loses each session at once is connected to with pauses between, the first time without one, and again without one after
// a session that has lived.
func TestLostSessionsAreReplacedWithPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &sessions{}
		var made []time.Duration
		begin := time.Now()
		s.refuse = status(404, "")
		r := wired(t, s, lathe.ReadOnly, ElicitRefuse, func(req *http.Request) (*http.Response, error) {
			if req.Method == http.MethodPost && req.Header.Get(sessionHeader) == "" {
				made = append(made, time.Since(begin))
			}
			return nil, nil
		})
		s0 := r.group.servers[0]
		lose := func() {
			synctest.Wait()
			s0.mu.Lock()
			x := s0.session
			s0.mu.Unlock()
			if x == nil {
				t.Fatal("no session")
			}
			x.lose()
			synctest.Wait()
		}
		pauses := func() (out []bool) { // whether there was one before each session
			for range 4 {
				before := time.Now()
				lose()
				r.until("ready", func(st Status) bool { return st.State == StateReady })
				out = append(out, time.Since(before) >= 500*time.Millisecond)
			}
			return out
		}
		want := []bool{false, true, true, true}
		if got := pauses(); !slices.Equal(got, want) {
			t.Errorf("pauses: %v, sessions at %v", got, made)
		}
		time.Sleep(steadyAfter)
		if got := pauses(); !slices.Equal(got, want) {
			t.Errorf("pauses after a session that lived: %v, sessions at %v", got, made)
		}
		lose()
		if st := r.group.Status()[0]; st.State != StateBackoff || st.LastError == "" || st.NextTry.IsZero() || st.Failures != 0 {
			t.Errorf("got %+v", st)
		}
		_ = r.group.Close()
	})
}

// A server that ends as soon as it is ready is started again after pauses that grow, until a session has lived for a while. Meanwhile a call
// waits for the server if it will be back in time, and is answered at once if it will not.
func TestServerThatEndsWhenItIsReadyIsRestartedWithGrowingPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := wired(t, &sessions{refuse: status(404, "")}, lathe.ReadOnly, ElicitRefuse, func(*http.Request) (*http.Response, error) { return nil, nil })
		end := func(longest time.Duration) {
			t.Helper()
			r.until("ready", func(st Status) bool { return st.State == StateReady })
			s0 := r.group.servers[0]
			s0.mu.Lock()
			x := s0.session
			s0.mu.Unlock()
			x.stop()
			synctest.Wait()
			st := r.group.Status()[0]
			wait := time.Until(st.NextTry)
			if st.State != StateBackoff || wait < longest/2 || wait > longest {
				t.Errorf("%s, next try in %s, want %s to %s", st.State, wait, longest/2, longest)
			}
			before := time.Now()
			if res, waited := r.call("web__do", map[string]int{}), time.Since(before); wait > readyWait && (waited > 0 || res.Code != lathe.CodeUnavailable) || wait <= readyWait && res.Content != "ok" {
				t.Errorf("next try in %s: after %s %+v", wait, waited, res)
			}
		}
		for _, longest := range []time.Duration{1, 2, 4, 8, 8, 8, 8} {
			end(longest * time.Second)
		}
		r.until("ready", func(st Status) bool { return st.State == StateReady })
		time.Sleep(steadyAfter)
		end(time.Second)
		_ = r.group.Close()
	})
}
