package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
)

// A reached is a transport that calls begun when another process has begun to send deltas.
type reached struct {
	http.Transport
	begun func()
}

func (r *reached) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.Transport.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusOK {
		r.begun()
	}
	return resp, err
}

// An answer that follows a run of another process from the middle of a turn has the whole text of the turn.
func TestStreamFollowsAnotherProcessFromTheMiddleOfATurn(t *testing.T) {
	t.Parallel()
	kept := store.NewMemory(nil)
	model := &halting{said: make(chan struct{}), proceed: make(chan struct{})}
	cluster := func(s *setting) {
		s.store = kept
		own := s.opts
		s.opts = func(o *server.Options) {
			if own != nil {
				own(o)
			}
			o.Cluster.Key = secret.New(clusterKey)
		}
	}
	owner := open(t, func(s *setting) {
		model.Model, s.model = s.model, model
		cluster(s)
	})
	relay := &reached{begun: sync.OnceFunc(func() { close(model.proceed) })}
	defer relay.CloseIdleConnections()
	other := open(t, func(s *setting) {
		cluster(s)
		own := s.opts
		s.opts = func(o *server.Options) {
			own(o)
			o.Cluster.Client = &http.Client{Transport: relay}
		}
	})
	const ask = `{"type":"message","role":"user","content":"write {\"n\":1}"}`
	resp, body := owner.do("POST", "/v1/responses", `{"model":"sim/demo"`+showItems+`,"input":[`+ask+`]}`)
	id := approvalIn(t, parse[struct{ Output []json.RawMessage }](t, body).Output)
	owner.answerOnly("approve")
	<-model.said
	owner.advertise(t, kept, resp.Header.Get("X-Lathe-Run-Id"))
	resp, body = other.do("POST", "/v1/responses", fmt.Sprintf(`{"model":"sim/demo","stream":true,"input":[%s,{"type":"mcp_approval_response","approval_request_id":%q,"approve":true}]}`, ask, id))
	if resp.StatusCode != 200 || !strings.Contains(body, `"text":"The tools said: {\"n\":1}"`) {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}
