package server_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/store"
)

// failedOver is a store that finds another server whenever a run is asked for. It gives out none by itself.
type failedOver struct {
	*store.Memory
	watched chan func(lost []string)
}

func (s failedOver) WatchLosses(ctx context.Context, fn func([]string)) {
	s.watched <- fn
	<-ctx.Done()
}

func (s failedOver) ClaimRun(ctx context.Context, node, runID string, lease time.Duration) (store.Claim, error) {
	fn := <-s.watched
	fn(nil)
	s.watched <- fn
	return s.Memory.ClaimRun(ctx, node, runID, lease)
}

func (failedOver) Claim(context.Context, string, time.Duration, int) ([]store.Claim, error) {
	return nil, nil
}

// A client that resumes a run just after the database has failed over gets an error that lets it try again.
func TestF6_ClientsAreSentAwayAfterAFailover(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{false, true} {
		for _, detach := range []bool{false, true} {
			t.Run(fmt.Sprint("stream ", stream, " detach ", detach), func(t *testing.T) {
				t.Parallel()
				kept := failedOver{store.NewMemory(nil), make(chan func([]string), 1)}
				f := serve(t, &setting{model: asksAndHands(), store: kept, approvals: approval.NewQueue(nil), policy: policy.Effects{ReadOnly: lathe.Ask}})
				ctx, cancel := context.WithCancel(context.Background())
				var tending sync.WaitGroup
				tending.Go(func() { f.gateway.Maintain(ctx) })
				defer tending.Wait()
				defer cancel()
				body := func(messages string) string {
					return fmt.Sprintf(`{"model":"sim/x","messages":[%s],"tools":[%s],"stream":%v,"lathe":{"detach":%v}}`, messages, weatherTool, stream, detach)
				}
				m, finish := f.answer(body(`{"role":"user","content":"hi"}`), stream)
				if finish != "tool_calls" {
					t.Fatalf("got %+v (%s), want the client's call", m, finish)
				}
				rows := f.stored(&store.RunFilter{})
				if len(rows) != 1 || rows[0].Status != "parked" {
					t.Fatalf("%+v", rows)
				}
				for path, body := range map[string]string{"/v1/chat/completions": body(again(m, "rain")), "/api/runs/" + rows[0].RunID + "/cancel": ""} {
					resp, text := f.do("POST", path, body)
					if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" || !strings.Contains(text, "Try again") {
						t.Errorf("%s: %d %v %s", path, resp.StatusCode, resp.Header, text)
					}
				}
				if now := f.stored(&store.RunFilter{}); len(now) != 1 || now[0].LastID != rows[0].LastID {
					t.Errorf("%+v", now)
				}
			})
		}
	}
}
