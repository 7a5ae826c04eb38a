package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/gateway/middleware"
	"github.com/lathe-run/lathe/secret"
)

// Every process reads the stored events of a run from the store, whichever process owns the run. Deltas are not stored. If
// a process has subscribers of a run that another process owns, it requests the deltas from the owner, with a key that the
// processes share. If deltas are lost on the way, the next stored event contains their text.

// A Cluster configures requests between the processes that share a store. With the zero value there are none.
type Cluster struct {
	// Key authenticates these requests; it must be the same in all processes. "": this process sends no such requests and refuses them.
	Key secret.Secret
	// Address is the base URL at which other processes reach this one, such as http://10.0.3.7:8700; it requires a Key. "": other processes
	// send no requests to this one.
	Address string
	// Client sends the requests to other processes; nil: a client that follows no redirects.
	Client *http.Client
}

// clusterPath is the prefix of the paths for requests between processes.
const clusterPath = "/cluster/v1/"

// Limits of the requests to other processes. maxDeltaLine is the maximum size in bytes of a line of their responses.
const (
	maxDeltaLine = 1 << 20
	relayRetry   = time.Second      // pause between attempts to reach the owner of a run
	relayIdle    = 30 * time.Second // longest pause between two queries for the owner, while the run has none
	relayTimeout = 10 * time.Second // time in which the owner must send its response headers
)

func (c *Cluster) check() error {
	if key := c.Key.Reveal(); key != "" && len(key) < middleware.MinToken {
		return fmt.Errorf("the cluster's key is shorter than %d characters", middleware.MinToken)
	}
	if c.Address == "" {
		return nil
	}
	u, err := url.Parse(c.Address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return errors.New("the address for other processes must be like http://10.0.3.7:8700")
	}
	if c.Key.Reveal() == "" {
		return errors.New("an address for other processes wants a key that they share: set cluster.key")
	}
	return nil
}

// authenticate returns a problem unless the request has the key of the cluster.
func (c *Cluster) authenticate(r *http.Request) *problem {
	var tokens middleware.Tokens
	tokens.AddUnchecked("cluster", c.Key) // check has refused a key that is too short, and an empty one is never found
	if i, _ := tokens.Find(r); i < 0 {
		return unauthorized("invalid_cluster_key", "This is for processes of the same cluster.")
	}
	return nil
}

// clusterPeers is the key under which requests of other processes of the cluster are counted.
var clusterPeers = &Key{Name: "cluster peers"}

// streamDeltas sends the deltas of a run that this process executes to another process, one JSON line for each delta, until
// the run ends or is suspended. If this process executes only one step of the run, the stream ends with the model call.
func (h *peerHandler) streamDeltas(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	id := r.PathValue("id")
	stepped := !h.executes(id) // this process executes one step; another process may execute the next
	if h.opts.Bus == nil || stepped && !h.opts.Engine.Owns(id) {
		return noRun()
	}
	c.runID = id
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(h.leaving, cancel)()
	sub := h.opts.Bus.Subscribe(id)
	defer sub.Close()
	rc := http.NewResponseController(w)
	defer func() { _ = rc.SetWriteDeadline(time.Time{}) }() // the next request of the connection must not get this deadline
	w.Header().Set("Content-Type", "application/jsonl")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	if rc.Flush() != nil {
		return nil
	}
	var line []byte
	for {
		e, err := sub.Next(ctx)
		if err != nil {
			return nil
		}
		switch e.Data.(type) {
		case *event.RunPaused, *event.RunFinished:
			return nil
		case *event.ModelCallFinished:
			if stepped {
				return nil
			}
		default: // the run continues
		}
		if !event.IsDelta(e.Data) {
			continue
		}
		if line, err = e.AppendWithContent(line[:0]); err != nil {
			return nil
		}
		_ = rc.SetWriteDeadline(time.Now().Add(h.opts.Limits.WriteTimeout)) // the writers of tests have no deadline
		if _, err := w.Write(append(line, '\n')); err != nil || rc.Flush() != nil {
			return nil
		}
	}
}

// A deltaRelay requests the deltas of a run of another process while it has watchers. over is closed when its goroutine has
// ended.
type deltaRelay struct {
	cancel context.CancelFunc
	over   chan struct{}
}

// relay publishes the deltas of a run on the bus of this process while another process owns the run. The caller must call
// leave exactly once; relaying stops when the last caller has left. relay does nothing if the store is not shared or there
// is no cluster key.
func (co *core) relay(id string) (leave func()) {
	if co.shared == nil || co.opts.Cluster.Key.Reveal() == "" {
		return func() {}
	}
	r, release := co.relays.acquire(id, func() *deltaRelay {
		ctx, cancel := context.WithCancel(co.leaving)
		r := &deltaRelay{cancel, make(chan struct{})}
		go func() {
			defer close(r.over)
			co.copyDeltas(ctx, id)
		}()
		return r
	})
	return func() {
		if release() {
			r.cancel()
			<-r.over
		}
	}
}

// copyDeltas requests the deltas of the run from the process that owns it, and repeats the request 1 s (relayRetry) after
// each response ends, until ctx is done. While no process owns the run, for example because it waits for an approval,
// copyDeltas queries the owner less often, down to every 30 s (relayIdle). After a notification of the run the next query
// follows in 1 s.
func (co *core) copyDeltas(ctx context.Context, id string) {
	again := time.NewTimer(0)
	defer again.Stop()
	woken, remove := co.waiters.channel(id)
	defer remove()
	pause := relayRetry
	for {
		select {
		case <-woken:
			if pause > relayRetry {
				pause = relayRetry
				again.Reset(pause)
			}
		case <-again.C:
			if co.copyOnce(ctx, id) {
				pause = relayRetry
			} else {
				pause = min(2*pause, relayIdle)
			}
			again.Reset(pause)
		case <-ctx.Done():
			return
		}
	}
}

// copyOnce requests the deltas once, unless this process executes the run, and publishes them on the bus of this process until
// the response ends. It returns false if no process owns the run, and true if the store failed.
func (co *core) copyOnce(ctx context.Context, id string) (owned bool) {
	if co.executes(id) {
		return true
	}
	owner, err := co.shared.Owner(ctx, id)
	if err == nil && owner == "" {
		return false
	}
	if err == nil {
		err = co.copyFrom(ctx, owner, id)
	}
	if err != nil && ctx.Err() == nil {
		co.opts.Log.Debug("text of a run that another process carries could not be had", "run_id", id, "error", err)
	}
	return true
}

// copyFrom makes the request of copyOnce to the process owner. It does nothing if the owner is this process or has no
// address.
func (co *core) copyFrom(ctx context.Context, owner, id string) error {
	if owner == co.opts.Engine.Node() {
		return nil
	}
	address, err := co.shared.Address(ctx, owner)
	if err != nil || address == "" {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(address, "/")+clusterPath+"runs/"+url.PathEscape(id)+"/deltas", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+co.opts.Cluster.Key.Reveal())
	late := time.AfterFunc(relayTimeout, cancel)
	resp, err := co.opts.Cluster.Client.Do(req)
	late.Stop()
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("it answered %d", resp.StatusCode)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxDeltaLine)
	for lines.Scan() {
		var e event.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return errors.New("it said something else than events")
		}
		if e.RunID != id || e.ID != 0 || e.Data == nil || !event.IsDelta(e.Data) {
			return errors.New("it said something else than deltas of the run")
		}
		co.opts.Bus.Emit(ctx, e)
	}
	return lines.Err()
}

// relayClient returns the client for requests to other processes. It follows no redirects, so that the key is sent only
// to the address that the owner advertised.
func relayClient() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4, IdleConnTimeout: 2 * time.Minute}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}
