package gateway

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/secret"
)

// What a run stores is read from the store, wherever it is carried. Its text as it comes is stored nowhere:
// a process that has watchers of a run which another one carries asks that one for it, under a key that the
// processes share. What gets lost on the way is in the next stored event.

// A Cluster is how processes that share a store reach each other.
type Cluster struct {
	// Key is what they prove to each other; zero: nobody is told anything.
	Key secret.Secret
	// Address is where the others reach this process, such as http://10.0.3.7:8700; "": they do not.
	Address string
	// Client asks the others; nil: one of its own, that follows no redirects.
	Client *http.Client
}

// clusterPath is where processes ask each other.
const clusterPath = "/cluster/v1/"

// Limits of what another process says.
const (
	maxDeltaLine = 1 << 20
	relayRetry   = time.Second      // between attempts to reach the carrier of a run
	relayTimeout = 10 * time.Second // until it answers
)

// check says what is wrong with the cluster.
func (c *Cluster) check() error {
	if key := c.Key.Reveal(); key != "" && len(key) < minSecret {
		return fmt.Errorf("the cluster's key is shorter than %d characters", minSecret)
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

// knows reports whether the request comes from a process of the cluster.
func (c *Cluster) knows(r *http.Request) bool {
	key := c.Key.Reveal()
	given, ok := bearer(r)
	want, got := sha256.Sum256([]byte(key)), sha256.Sum256([]byte(given))
	return ok && key != "" && subtle.ConstantTimeCompare(want[:], got[:]) == 1
}

// clusterPeers is the key under which requests of the other processes of the cluster are counted.
var clusterPeers = &Key{Name: "cluster peers"}

// tellDeltas streams to another process what a run says that is carried here, one JSON line for each delta,
// until the run ends or waits.
func (g *Gateway) tellDeltas(w http.ResponseWriter, r *http.Request, c *caller) {
	id, ok := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, clusterPath+"runs/"), "/deltas")
	c.pattern = "GET " + clusterPath + "runs/{id}/deltas"
	switch {
	case !g.opts.Cluster.knows(r):
		c.fail(w, &problem{Status: http.StatusUnauthorized, Code: "invalid_cluster_key", Message: "This is for processes of the same cluster."})
		return
	case !ok || r.Method != http.MethodGet || g.opts.Bus == nil || !g.carries(id):
		c.fail(w, noRun())
		return
	}
	leave, p := g.usage.enter(clusterPeers, watcherPlace, false)
	if p != nil {
		c.fail(w, p)
		return
	}
	defer leave()
	c.runID = id
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(g.leaving, cancel)()
	sub := g.opts.Bus.Subscribe(id)
	defer sub.Close()
	rc := http.NewResponseController(w)
	defer func() { _ = rc.SetWriteDeadline(time.Time{}) }() // the connection may be used again
	w.Header().Set("Content-Type", "application/jsonl")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	if rc.Flush() != nil {
		return
	}
	var line []byte
	for {
		e, err := sub.Next(ctx)
		if err != nil {
			return
		}
		switch e.Data.(type) {
		case *lathe.RunPaused, *lathe.RunFinished:
			return
		default: // it goes on
		}
		if !lathe.IsDelta(e.Data) {
			continue
		}
		if line, err = e.AppendJSON(line[:0], true); err != nil {
			return
		}
		_ = rc.SetWriteDeadline(time.Now().Add(g.opts.Limits.WriteTimeout)) // a test's writer has none
		if _, err := w.Write(append(line, '\n')); err != nil || rc.Flush() != nil {
			return
		}
	}
}

// relays are the runs of other processes whose text is brought here for watchers.
type relays struct {
	mu sync.Mutex
	of map[string]*oneRelay // by run
}

type oneRelay struct {
	watchers int
	cancel   context.CancelFunc
	over     chan struct{}
}

// relay has what a run says brought here as long as it is carried elsewhere, until leave is called, once.
func (g *Gateway) relay(id string) (leave func()) {
	if g.shared == nil || g.opts.Cluster.Key.Reveal() == "" {
		return func() {}
	}
	l := &g.relays
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.of[id]
	if r == nil {
		ctx, cancel := context.WithCancel(g.leaving)
		r = &oneRelay{cancel: cancel, over: make(chan struct{})}
		if l.of == nil {
			l.of = map[string]*oneRelay{}
		}
		l.of[id] = r
		go func() {
			defer close(r.over)
			g.bring(ctx, id)
		}()
	}
	r.watchers++
	return func() {
		l.mu.Lock()
		r.watchers--
		last := r.watchers == 0
		if last {
			delete(l.of, id)
			r.cancel()
		}
		l.mu.Unlock()
		if last {
			<-r.over
		}
	}
}

// bring asks whoever carries the run, again and again, until ctx is done.
func (g *Gateway) bring(ctx context.Context, id string) {
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
		if !g.carries(id) {
			if err := g.bringOnce(ctx, id); err != nil && ctx.Err() == nil {
				g.opts.Log.Debug("text of a run that another process carries could not be had", "run_id", id, "error", err)
			}
		}
		again.Reset(relayRetry)
	}
}

// bringOnce hands what the carrier of the run says to the watchers here, until it ends.
func (g *Gateway) bringOnce(ctx context.Context, id string) error {
	owner, err := g.shared.Owner(ctx, id)
	if err != nil || owner == "" || owner == g.opts.Engine.Node() {
		return err
	}
	address, err := g.shared.Address(ctx, owner)
	if err != nil || address == "" {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(address, "/")+clusterPath+"runs/"+url.PathEscape(id)+"/deltas", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+g.opts.Cluster.Key.Reveal())
	late := time.AfterFunc(relayTimeout, cancel)
	resp, err := g.opts.Cluster.Client.Do(req)
	late.Stop()
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // it was read as far as it goes
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("it answered %d", resp.StatusCode)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxDeltaLine)
	for lines.Scan() {
		var e lathe.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return errors.New("it said something else than events")
		}
		if e.RunID != id || e.ID != 0 || e.Data == nil || !lathe.IsDelta(e.Data) {
			return errors.New("it said something else than deltas of the run")
		}
		g.opts.Bus.Emit(ctx, e)
	}
	return lines.Err()
}

// relayClient asks other processes. It sends the key to no address but the one that was advertised.
func relayClient() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4, IdleConnTimeout: 2 * time.Minute}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}
