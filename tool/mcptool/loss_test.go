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
