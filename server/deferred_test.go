package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
)

// A gated store takes nothing before its gate is opened, or nothing at all.
type gated struct {
	*store.Memory
	gate  chan struct{}
	asked atomic.Int64 // appends, those included that are not taken
	full  bool
}

func (g *gated) pass(ctx context.Context) error {
	g.asked.Add(1)
	if g.full {
		return &lathe.Error{Code: lathe.CodeUnavailable, Op: "test", Err: errors.New("disk full")}
	}
	select {
	case <-g.gate:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *gated) Append(ctx context.Context, id string, last int64, events ...event.Event) (int64, error) {
	if err := g.pass(ctx); err != nil {
		return 0, err
	}
	return g.Memory.Append(ctx, id, last, events...)
}

func (g *gated) AppendAs(ctx context.Context, c store.Claim, last int64, events ...event.Event) (int64, error) {
	if err := g.pass(ctx); err != nil {
		return 0, err
	}
	return g.Memory.AppendAs(ctx, c, last, events...)
}

func openDeferred(t *testing.T, full bool) (*runFixture, *gated) {
	t.Helper()
	kept := &gated{Memory: store.NewMemory(nil), gate: make(chan struct{}), full: full}
	return open(t, func(s *setting) { s.store, s.policy = kept, policy.AllowAll() }), kept
}

func chatBody(prompt, more string, stream bool) string {
	return fmt.Sprintf(`{"model":"sim/any","stream":%v,"messages":[{"role":"user","content":%s}]%s}`, stream, quote(prompt), more)
}

// A chat completion whose tools only read does not wait for the store. After the response any client with access can
// read the run.
func TestChatDoesNotWaitForTheStore(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{false, true} {
		for _, prompt := range []string{"hi", `look {"n":1}`} {
			t.Run(fmt.Sprint(stream, " ", prompt), func(t *testing.T) {
				t.Parallel()
				h, kept := openDeferred(t, false)
				resp, body := h.do("POST", "/v1/chat/completions", chatBody(prompt, "", stream))
				if resp.StatusCode != http.StatusOK {
					t.Fatalf("%d %s", resp.StatusCode, body)
				}
				close(kept.gate)
				if r := h.show(resp.Header.Get("X-Lathe-Run-Id")); r.Status != "completed" || r.Answer == "" {
					t.Errorf("the run: %+v", r)
				}
				if n := kept.asked.Load(); n != 1 {
					t.Errorf("%d appends, want 1", n)
				}
			})
		}
	}
}

// What has to survive is on record first: a call that may write, a run of a session, and one that goes on
// without its client. Where it cannot be, nothing is done.
func TestChatWaitsForTheStoreWhereItMust(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"writes":  chatBody(`write {"n":1}`, "", false),
		"session": chatBody("hi", `,"lathe":{"session":"s"}`, false),
		"detach":  chatBody("hi", `,"lathe":{"detach":true}`, false),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, kept := openDeferred(t, true)
			resp, text := h.do("POST", "/v1/chat/completions", body)
			if resp.StatusCode < 500 || h.log.wrote.Load() != 0 || kept.asked.Load() == 0 {
				t.Errorf("%d %s; %d written, %d appends", resp.StatusCode, text, h.log.wrote.Load(), kept.asked.Load())
			}
		})
	}
}

// Calls that are handed over beside results of the server are on record before the client has them; calls
// alone are not waited for.
func TestHandoverWaitsForTheStoreWhereItHasResults(t *testing.T) {
	t.Parallel()
	for prompt, due := range map[string]bool{"weather {}\nlook {\"n\":1}": true, "look {\"n\":1}\n\nweather {}": true, "weather {}": false} {
		t.Run(prompt, func(t *testing.T) {
			t.Parallel()
			h, kept := openDeferred(t, true)
			resp, body := h.do("POST", "/v1/chat/completions", chatBody(prompt, `,"tools":[{"type":"function","function":{"name":"weather","parameters":{"type":"object"}}}]`, false))
			if failed := resp.StatusCode >= 500; failed != due {
				t.Errorf("%d %s after %d appends", resp.StatusCode, body, kept.asked.Load())
			}
		})
	}
}

// The events of a completion are there once it is answered.
func TestChatIsWatchedAfterItsEnd(t *testing.T) {
	t.Parallel()
	h := open(t, nil)
	for range 20 {
		resp, _ := h.do("POST", "/v1/chat/completions", chatBody("hi", "", false))
		id := resp.Header.Get("X-Lathe-Run-Id")
		for _, path := range []string{"/events?follow=false", "/export"} {
			if resp, body := h.do("GET", "/api/runs/"+id+path, ""); resp.StatusCode != http.StatusOK {
				t.Fatalf("%s: %d %s", path, resp.StatusCode, body)
			}
		}
	}
}

// A completion that is at work is found by its id, cannot be removed under way, and can be cancelled.
func TestChatAtWorkIsFound(t *testing.T) {
	t.Parallel()
	h := open(t, func(s *setting) {
		s.policy = policy.AllowAll()
		s.opts = func(o *server.Options) { o.Setup.Keys = []server.Key{key("a"), key("b")} }
	})
	h.key = text("a")
	h.model.step = make(chan struct{})
	done := make(chan string)
	go func() {
		_, body := h.do("POST", "/v1/chat/completions", chatBody("hi", "", false))
		done <- body
	}()
	type list struct {
		Data []run `json:"data"`
	}
	var rows []run
	for deadline := time.Now().Add(time.Minute); len(rows) == 0 && time.Now().Before(deadline); {
		_, body := h.do("GET", "/api/runs", "")
		rows = parse[list](t, body).Data
	}
	if len(rows) != 1 || rows[0].Status != "running" {
		t.Fatalf("%+v", rows)
	}
	id := rows[0].ID
	h.refused("DELETE", "/api/principals/a", "", http.StatusConflict, "run_running")
	h.refused("DELETE", "/api/runs/"+id, "", http.StatusConflict, "run_running")
	h.refused("POST", "/api/runs/"+id+"/cancel", "", http.StatusNotFound, "run_not_found", "Authorization", "Bearer "+text("b"))
	if resp, body := h.do("POST", "/api/runs/"+id+"/cancel", ""); resp.StatusCode >= 300 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	<-done
	if r := h.show(id); r.Reason != "cancelled" {
		t.Errorf("%+v", r)
	}
}
