package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lathe-run/lathe/bench/internal/proc"
	"github.com/lathe-run/lathe/bench/internal/proxy"
)

// A client makes requests of one kind.
type client struct {
	http  *http.Client
	url   string
	body  string
	event bool // of a stream
}

func newClient(base, model string, stream bool) *client {
	more := ""
	if stream {
		more = `,"stream":true,"stream_options":{"include_usage":true}`
	}
	return &client{http: &http.Client{Transport: proxy.Transport()}, url: base + "/v1/chat/completions", event: stream,
		body: `{"model":"` + model + `","messages":[{"role":"system","content":"You are terse."},{"role":"user","content":"` + strings.Repeat("Say something. ", 20) + `"}]` + more + `}`}
}

// An answer is the outcome of one request.
type answer struct {
	first, whole time.Duration
	events       int
}

var errCut = errors.New("the answer is not whole")

func (c *client) do() (a answer, err error) {
	began := time.Now()
	resp, err := c.http.Post(c.url, "application/json", strings.NewReader(c.body))
	if err != nil {
		return a, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 200)) // it is shown
		return a, fmt.Errorf("status %d: %s", resp.StatusCode, b)
	}
	done := false
	br := bufio.NewReaderSize(resp.Body, 16<<10)
	for {
		line, err := br.ReadSlice('\n')
		if a.first == 0 && len(line) > 0 {
			a.first = time.Since(began)
		}
		if bytes.HasPrefix(line, []byte("data: ")) {
			a.events++
			done = done || bytes.HasPrefix(line, []byte("data: [DONE]"))
		}
		done = done || !c.event && bytes.Contains(line, []byte(`"usage"`))
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			break
		}
	}
	if a.whole = time.Since(began); !done {
		return a, errCut
	}
	return a, nil
}

// A sample is what a load came to.
type sample struct {
	answers []answer
	failed  int
	first   error // of those
	events  int
	cpu     time.Duration
	took    time.Duration
	rss     int // KiB, the most that was seen
}

// load has n clients make requests for a while, or until each has made most.
func load(p *proc.Process, c *client, n, most int, span time.Duration) *sample {
	s := &sample{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	var stop atomic.Bool
	before, began := p.CPU(), time.Now()
	for range n {
		wg.Go(func() {
			for i := 0; (most == 0 || i < most) && !stop.Load(); i++ {
				a, err := c.do()
				mu.Lock()
				if err != nil {
					if s.failed++; s.first == nil {
						s.first = err
					}
				} else {
					s.answers = append(s.answers, a)
					s.events += a.events
				}
				mu.Unlock()
			}
		})
	}
	over := make(chan struct{})
	go func() { wg.Wait(); close(over) }()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for alive := true; alive; {
		select {
		case <-over:
			alive = false
		case <-tick.C:
			s.rss = max(s.rss, p.Memory())
			stop.Store(span > 0 && time.Since(began) > span)
		}
	}
	s.cpu, s.took = p.CPU()-before, time.Since(began)
	c.http.CloseIdleConnections()
	return s
}

// at is a quantile of the answers.
func (s *sample) at(q float64, of func(answer) time.Duration) time.Duration {
	if len(s.answers) == 0 {
		return 0
	}
	all := make([]time.Duration, len(s.answers))
	for i, a := range s.answers {
		all[i] = of(a)
	}
	slices.Sort(all)
	return all[min(int(q*float64(len(all))), len(all)-1)]
}

func first(a answer) time.Duration { return a.first }
func whole(a answer) time.Duration { return a.whole }

func median[T int | float64 | time.Duration](v []T) T {
	v = slices.Sorted(slices.Values(v))
	if len(v) == 0 {
		return 0
	}
	return v[len(v)/2]
}
