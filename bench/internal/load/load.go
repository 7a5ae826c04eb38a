// Package load puts a load on a process that serves HTTP, and measures what it answers.
package load

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
)

// A Client makes requests of one kind.
type Client struct {
	HTTP   *http.Client
	URL    string
	Header http.Header // in addition to the content type
	Body   string
	Stream bool
	End    string // the last event of a stream contains it, and the whole answer of a client without Stream
}

// An Answer is the outcome of one request.
type Answer struct {
	First, Whole time.Duration
	Events       int
}

var errCut = errors.New("the answer is not whole")

// Do makes one request and reads its answer.
func (c *Client) Do() (a Answer, err error) {
	req, err := http.NewRequest(http.MethodPost, c.URL, strings.NewReader(c.Body))
	if err != nil {
		return a, err
	}
	for name, values := range c.Header {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/json")
	began := time.Now()
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return a, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 200)) // it is shown
		return a, fmt.Errorf("status %d: %s", resp.StatusCode, b)
	}
	done, end := false, []byte(c.End)
	br := bufio.NewReaderSize(resp.Body, 16<<10)
	for {
		line, err := br.ReadSlice('\n')
		if a.First == 0 && len(line) > 0 {
			a.First = time.Since(began)
		}
		event := bytes.HasPrefix(line, []byte("data: "))
		if event {
			a.Events++
		}
		done = done || event == c.Stream && bytes.Contains(line, end)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			break
		}
	}
	if a.Whole = time.Since(began); !done {
		return a, errCut
	}
	return a, nil
}

// A Sample is what a load came to.
type Sample struct {
	Answers []Answer
	Failed  int
	First   error // of those
	Events  int
	CPU     time.Duration // of the process
	Took    time.Duration
	RSS     int // KiB of the process, the most that was seen
}

// Run has n clients make requests of a process for a while, or until each has made most, if it is not 0.
func Run(p *proc.Process, c *Client, n, most int, span time.Duration) *Sample {
	s := &Sample{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	var stop atomic.Bool
	before, began := p.CPU(), time.Now()
	for range n {
		wg.Go(func() {
			for i := 0; (most == 0 || i < most) && !stop.Load(); i++ {
				a, err := c.Do()
				mu.Lock()
				if err != nil {
					if s.Failed++; s.First == nil {
						s.First = err
					}
				} else {
					s.Answers = append(s.Answers, a)
					s.Events += a.Events
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
			s.RSS = max(s.RSS, p.Memory())
			stop.Store(span > 0 && time.Since(began) > span)
		}
	}
	s.CPU, s.Took = p.CPU()-before, time.Since(began)
	c.HTTP.CloseIdleConnections()
	return s
}

// At is a quantile of the answers.
func (s *Sample) At(q float64, of func(Answer) time.Duration) time.Duration {
	if len(s.Answers) == 0 {
		return 0
	}
	all := make([]time.Duration, len(s.Answers))
	for i, a := range s.Answers {
		all[i] = of(a)
	}
	slices.Sort(all)
	return all[min(int(q*float64(len(all))), len(all)-1)]
}

// First and Whole are the times of an answer, for At.
func First(a Answer) time.Duration { return a.First }
func Whole(a Answer) time.Duration { return a.Whole }

// Median returns the median of v, or 0 if v is empty.
func Median[T int | float64 | time.Duration](v []T) T {
	v = slices.Sorted(slices.Values(v))
	if len(v) == 0 {
		var none T
		return none
	}
	return v[len(v)/2]
}
