package postgres

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestNotificationsArePaced counts the notifications of events that are stored one by one in a second: the first is sent
// immediately, the others at most one in runNotifyEvery, and each run that was added is in one of them.
func TestNotificationsArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, stop := newOutbox[string](), make(chan struct{})
		type sent struct {
			at   time.Time
			runs []string
		}
		var all []sent
		over := make(chan struct{})
		go func() {
			defer close(over)
			o.deliver(stop, runNotifyEvery, func(lists []string) {
				for _, list := range lists {
					var runs []string
					if err := json.Unmarshal([]byte(list), &runs); err != nil {
						t.Error(err)
					}
					all = append(all, sent{time.Now(), runs})
				}
			})
		}()
		began := time.Now()
		const events = 1000 // one a millisecond, of ten runs
		for i := range events {
			o.add(fmt.Sprint("run_", i%10))
			synctest.Wait()
			if i == 0 && (len(all) != 1 || !slices.Equal(all[0].runs, []string{"run_0"})) {
				t.Fatalf("after the first event %v were sent, want it immediately", all)
			}
			time.Sleep(time.Millisecond)
		}
		time.Sleep(runNotifyEvery)
		synctest.Wait()
		if most := 1 + int(events*time.Millisecond/runNotifyEvery); len(all) > most || len(all) < most-1 {
			t.Errorf("%d events led to %d notifications, want %d", events, len(all), most)
		}
		for i, n := range all[1:] {
			if since := n.at.Sub(all[i].at); since < runNotifyEvery {
				t.Errorf("notification %d was sent %v after the one before, want at least %v", i+1, since, runNotifyEvery)
			}
			if len(n.runs) != 10 {
				t.Errorf("notification %d has the runs %v, want all ten", i+1, n.runs)
			}
		}
		if last := all[len(all)-1].at.Sub(began); last < events*time.Millisecond-time.Millisecond {
			t.Errorf("the last notification was sent after %v, before the last event", last)
		}
		time.Sleep(time.Second) // nothing is stored
		n := len(all)
		o.add("run_later")
		synctest.Wait()
		if len(all) != n+1 || !slices.Equal(all[n].runs, []string{"run_later"}) {
			t.Errorf("after a pause %v were sent, want one notification immediately", all[n:])
		}
		close(stop)
		<-over
	})
}
