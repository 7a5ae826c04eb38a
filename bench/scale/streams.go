package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/lathe-run/lathe/bench/internal/proc"
)

// eventRate is how many events a second all paced streams of a size bring together: the number of streams grows, the load does not.
const eventRate = 2000

// mostStreams is the largest number of streams that is measured: each takes two files of a gateway, which may have 20,000 on most machines.
const mostStreams = 9900

// paceOf is the time between two events of one of n streams, in ms.
func paceOf(n int) int { return max(5, 1000*n/eventRate) }

// streams measures gateways with many open streams: the memory that idle ones take, and the CPU time of an event of paced ones. Each
// size is measured with a new process of each gateway. Streams that a peer loses are counted in a note; one that lathe loses is an error.
//
// httputil.ReverseProxy loses some in a thousand. net/http's server closes the body of a request when the handler writes the head of the
// answer. If the model server has answered before the transport has read the end of that body, this read fails, and the transport closes
// the connection to the model server.
func streams(s *settings) (*Chart, error) {
	c := &Chart{Title: "Open streams", Size: "streams that are open at once"}
	sizes := steps(10, 3000)
	if s.large {
		sizes = steps(10, mostStreams)
	}
	if s.quick {
		sizes = []int{1, 10}
	}
	if most := streamsAllowed(); sizes[len(sizes)-1] > most {
		c.note("The limit on open files allows %d streams.", most)
		for len(sizes) > 0 && sizes[len(sizes)-1] > most {
			sizes = sizes[:len(sizes)-1]
		}
	}
	c.note("Paced streams bring %d events a second together, at most one per 5 ms each.", eventRate)
	r, err := s.newModelServer()
	if err != nil {
		return nil, err
	}
	defer r.close()
	for _, n := range sizes {
		for i, name := range gatewayNames {
			if err := s.streamsThrough(c, r, n, i); err != nil {
				return nil, fmt.Errorf("%s, %d streams: %w", name, n, err)
			}
		}
	}
	return c, nil
}

var gatewayNames = []string{"ReverseProxy", "lean proxy", "lathe"}

// streamsAllowed is how many streams the limit on open files lets a gateway have; the Go runtime has raised it as far as it may.
func streamsAllowed() int {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return mostStreams
	}
	const others = 100 // files of the process itself
	return int((min(l.Max, 1<<20) - others) / 2)
}

// streamsThrough measures n streams through a new process of the gateway of that index: first idle ones, then paced ones.
func (s *settings) streamsThrough(c *Chart, r *rig, n, i int) error {
	name, peer := gatewayNames[i], i < len(gatewayNames)-1
	var p *proc.Process
	var err error
	if peer {
		p, err = s.addPeer(r, name)
	} else {
		var cfg string
		if cfg, err = s.gatewayConfig("streams", r.mock.Base, "tools: {builtin: []}\n"); err == nil {
			p, err = s.addLathe(r, name, cfg)
		}
	}
	if err != nil {
		return err
	}
	defer p.Stop()
	kib, lost, err := s.idleStreams(p, n)
	if err != nil {
		return err
	}
	if err := c.noteLost(name, "idle", peer, lost, n); err != nil {
		return err
	}
	paced, err := openStreams(p.Base, fmt.Sprintf("p%d", paceOf(n)), n)
	if err != nil {
		return err
	}
	defer paced.close()
	paced.follow()
	var got []figure
	for range s.rounds {
		f, err := s.watchEvents(p, paced)
		if err != nil {
			return err
		}
		got = append(got, f)
	}
	if err := c.noteLost(name, "paced", peer, int(paced.ended.Load()), n); err != nil {
		return err
	}
	c.add("Memory of all idle streams", name, measureRSS, peer, float64(n), kib)
	c.add("", name+", one idle stream", measureRSS, peer, float64(n), kib/float64(n-lost))
	c.add("An event of paced streams", name, measureCPU, peer, float64(n), middle(got, func(f figure) float64 { return f.cpu }))
	return nil
}

// noteLost notes how many of n streams a peer has lost. It returns an error if lathe has lost one, or a peer all of them.
func (c *Chart) noteLost(name, kind string, peer bool, lost, n int) error {
	switch {
	case lost == 0:
		return nil
	case !peer || lost == n:
		return fmt.Errorf("%d of %d %s streams have ended", lost, n, kind)
	}
	c.note("%s lost %d of %d %s streams.", name, lost, n, kind)
	return nil
}

// idleStreams returns the memory, in KiB, that n open streams add to that of a gateway which has served one, and how many of them
// have ended by themselves.
func (s *settings) idleStreams(p *proc.Process, n int) (kib float64, lost int, err error) {
	warm, err := openStreams(p.Base, "i", 1)
	if err != nil {
		return 0, 0, err
	}
	defer warm.close()
	before := p.Memory()
	all, err := openStreams(p.Base, "i", n)
	if err != nil {
		return 0, 0, err
	}
	defer all.close()
	all.follow() // counts those that end
	if !s.quick {
		time.Sleep(time.Second) // memory of the requests that opened the streams is freed
	}
	return float64(max(p.Memory()-before, 0)), int(all.ended.Load()), nil
}

// watchEvents returns the CPU time of the gateway for one event. It watches for two seconds, and longer if the streams have brought fewer
// events than there are streams, or fewer than a hundred. Streams that have ended bring none.
func (s *settings) watchEvents(p *proc.Process, all *openedStreams) (figure, error) {
	const patience = time.Minute
	span, least := 2*time.Second, int64(max(100, len(all.conns)-int(all.ended.Load())))
	if s.quick {
		span, least = 50*time.Millisecond, 5
	}
	before, events, began := p.CPU(), all.events.Load(), time.Now()
	for {
		time.Sleep(min(span, 20*time.Millisecond))
		if n, took := all.events.Load()-events, time.Since(began); took >= span && n >= least {
			return figure{cpu: float64((p.CPU() - before).Nanoseconds()) / 1e3 / float64(n)}, nil
		} else if took > patience || int(all.ended.Load()) == len(all.conns) {
			return figure{}, fmt.Errorf("%d events in %s, and %d of %d streams have ended", n, took.Round(time.Millisecond), all.ended.Load(), len(all.conns))
		}
	}
}

// openedStreams are the connections of a client, each with one stream that has begun.
type openedStreams struct {
	conns   []net.Conn
	readers []*bufio.Reader
	events  atomic.Int64
	ended   atomic.Int64
	closing atomic.Bool
	wg      sync.WaitGroup
}

// openStreams opens n streams of a model, some at a time, and waits until each has brought an event.
func openStreams(base, model string, n int) (*openedStreams, error) {
	const together = 16
	const patience = 2 * time.Minute
	o := &openedStreams{conns: make([]net.Conn, n), readers: make([]*bufio.Reader, n)}
	var next atomic.Int64
	errs := make([]error, together)
	var wg sync.WaitGroup
	until := time.Now().Add(patience)
	for w := range together {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && errs[w] == nil; i = int(next.Add(1)) - 1 {
				o.conns[i], o.readers[i], errs[w] = openStream(base, model, until)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		o.close()
		return nil, err
	}
	return o, nil
}

func openStream(base, model string, until time.Time) (_ net.Conn, _ *bufio.Reader, err error) {
	address := strings.TrimPrefix(base, "http://")
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			_ = conn.Close() // the other error is reported
		}
	}()
	body := `{"model":"` + model + `","stream":true,"messages":[{"role":"user","content":"Go on."}]}`
	if err = conn.SetDeadline(until); err != nil {
		return nil, nil, err
	}
	if _, err = fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", address, len(body), body); err != nil {
		return nil, nil, err
	}
	r := bufio.NewReaderSize(conn, 1<<10)
	for first := true; ; first = false {
		line, err := r.ReadSlice('\n')
		if first && !bytes.Contains(line, []byte(" 200 ")) {
			return nil, nil, errors.Join(fmt.Errorf("the answer is %q", line), err)
		}
		if bytes.HasPrefix(line, []byte("data: ")) && bytes.Contains(line, []byte(`"word "`)) {
			return conn, r, conn.SetDeadline(time.Time{})
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return nil, nil, err
		}
	}
}

// follow reads and counts the events of all streams until close.
func (o *openedStreams) follow() {
	for _, r := range o.readers {
		o.wg.Go(func() {
			for whole := true; ; {
				line, err := r.ReadSlice('\n')
				if whole && bytes.HasPrefix(line, []byte("data: ")) {
					o.events.Add(1)
				}
				whole = err == nil
				if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
					if !o.closing.Load() {
						o.ended.Add(1)
					}
					return
				}
			}
		})
	}
}

// close ends all streams.
func (o *openedStreams) close() {
	o.closing.Store(true)
	for _, c := range o.conns {
		if t, ok := c.(*net.TCPConn); ok {
			_ = t.SetLinger(0) // a closed connection keeps no port
			_ = t.Close()      // its data is of no more interest
		}
	}
	o.wg.Wait()
}
