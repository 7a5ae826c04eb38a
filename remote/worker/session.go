package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire/workers"
	"github.com/lathe-run/lathe/remote"
)

const (
	dialTimeout  = 10 * time.Second
	writeTimeout = 10 * time.Second
	// minLease and maxLease limit the lease that the gateway sets.
	minLease, maxLease = 100 * time.Millisecond, 10 * time.Minute
	// lookEvery is the interval at which the worker checks whether its tools have changed.
	lookEvery = time.Second
	// maxOutbox is the maximum number of frames in the outbox of a session.
	maxOutbox = 2 * workers.MaxHeld
)

// A session is one connection of a worker to a gateway. The goroutine of serve reads its frames; the others send some through write and
// some through the outbox.
type session struct {
	w        *Worker
	ws       *websocket.Conn
	began    time.Time     // when the session was made
	lease    time.Duration // set by the gateway
	welcomed bool          // the gateway has accepted the worker
	offered  []remote.Tool // the tools that were sent last
	// outbox contains the frames of the reading goroutine, which another goroutine writes: if the reader wrote, worker and gateway could
	// block each other.
	outbox chan *workers.Frame

	mu sync.Mutex
	// ahead is the least observed difference between the time since began and the gateway's time in a frame: the offset of the clocks plus
	// the shortest delay of a frame.
	ahead  time.Duration
	synced bool
}

// errSentAway is the error of serve after the gateway sent a drain frame.
var errSentAway = errors.New("the gateway is about to stop")

// serve connects to the gateway and processes frames until the connection ends. It returns why it ended.
func (s *session) serve(ctx context.Context) error {
	dial, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	ws, res, err := websocket.Dial(dial, s.w.url, &websocket.DialOptions{HTTPClient: s.w.opts.Client, Subprotocols: []string{workers.Protocol},
		HTTPHeader: http.Header{"Authorization": {"Bearer " + s.w.opts.Token.Reveal()}}, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return refusal(res, err)
	}
	s.ws = ws
	defer func() { _ = ws.CloseNow() }()
	ws.SetReadLimit(workers.MaxFrame)
	if err := s.greet(ctx); err != nil {
		return err
	}
	renewals, stop := context.WithCancel(ctx)
	var beating sync.WaitGroup
	beating.Go(func() { s.renewLeases(renewals) })
	beating.Go(func() { s.sendPosts(renewals) })
	err = s.listen(ctx)
	s.w.mu.Lock()
	if s.w.session == s {
		s.w.session = nil
	}
	s.w.mu.Unlock()
	stop()
	beating.Wait()
	if ctx.Err() != nil || errors.Is(err, errSentAway) {
		_ = ws.Close(websocket.StatusNormalClosure, "")
	}
	return err
}

// maxRefusal is the maximum number of bytes read from the body of a response that refuses the connection.
const maxRefusal = 512

// refusal returns err, or an error with the message of the gateway if the gateway sent one.
func refusal(res *http.Response, err error) error {
	if res == nil || res.Body == nil {
		return err
	}
	b, _ := io.ReadAll(io.LimitReader(res.Body, maxRefusal)) // a part of the body is sufficient
	_ = res.Body.Close()
	return fmt.Errorf("the gateway answers %d: %s", res.StatusCode, strings.TrimSpace(strings.ToValidUTF8(string(b), "")))
}

func (s *session) read(ctx context.Context, within time.Duration) (*workers.Frame, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	_, b, err := s.ws.Read(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("the gateway sent nothing for %v", within)
		}
		if e := (websocket.CloseError{}); errors.As(err, &e) && e.Reason != "" {
			return nil, fmt.Errorf("the gateway closed the connection: %s", e.Reason)
		}
		return nil, fmt.Errorf("the connection is lost: %w", err)
	}
	f, err := workers.Decode(b)
	if err == nil && f.AtMS > 0 {
		s.sync(f.AtMS)
	}
	return f, err
}

// write sends a frame. If it fails, it closes the connection.
func (s *session) write(f *workers.Frame) {
	b, err := workers.Encode(f)
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
		err = s.ws.Write(ctx, websocket.MessageText, b)
		cancel()
	}
	if err != nil {
		_ = s.ws.CloseNow() // ends the read of listen
	}
}

// post queues a frame in the outbox. If the outbox is full, it closes the connection.
func (s *session) post(f *workers.Frame) {
	select {
	case s.outbox <- f:
	default:
		_ = s.ws.CloseNow() // ends the read of listen
	}
}

func (s *session) sendPosts(ctx context.Context) {
	for {
		select {
		case f := <-s.outbox:
			s.write(f)
		case <-ctx.Done():
			return
		}
	}
}

// sync updates ahead from the time in a frame. The frame with the least delay gives the best estimate.
func (s *session) sync(atMS int64) {
	ahead := time.Since(s.began) - time.Duration(atMS)*time.Millisecond
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.synced || ahead < s.ahead {
		s.ahead, s.synced = ahead, true
	}
}

// gatewayNow returns an estimate of the time on the gateway's clock. The true time is not earlier by more than the shortest delay of a
// frame.
func (s *session) gatewayNow() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.began) - s.ahead
}

// greet sends the worker's tools and calls, waits for the welcome of the gateway, and sends again the results that no gateway has
// acknowledged.
func (s *session) greet(ctx context.Context) error {
	w := s.w
	hello := &workers.Frame{Type: workers.Hello, Worker: w.opts.Name, SDK: w.opts.SDK, Instance: w.instance}
	w.mu.Lock()
	draining := w.draining
	w.mu.Unlock()
	if !draining {
		s.offered = w.Offers()
		hello.Offers, hello.Credits = s.offered, w.opts.Concurrency
	}
	hello.Held = w.refs()
	s.write(hello)
	f, err := s.read(ctx, dialTimeout)
	if err != nil {
		return err
	}
	if f.Type != workers.Welcome {
		return errors.New("the gateway does not speak this protocol")
	}
	s.lease = min(max(time.Duration(f.LeaseMS)*time.Millisecond, minLease), maxLease)
	s.welcomed = true
	w.mu.Lock()
	w.session = s
	w.count.Connects++
	var again []*workers.Frame
	for _, j := range w.held {
		if j.result != nil {
			again = append(again, j.result)
		}
	}
	draining = w.draining
	w.mu.Unlock()
	w.reportState(State{Connected: true, Refused: f.Refused})
	for _, r := range again {
		s.post(r)
	}
	if draining {
		s.post(&workers.Frame{Type: workers.Drain})
	}
	return nil
}

// listen processes frames until the connection ends. It returns errSentAway if the gateway sent a drain frame.
func (s *session) listen(ctx context.Context) error {
	for {
		f, err := s.read(ctx, s.lease)
		if err != nil {
			return err
		}
		switch f.Type {
		case workers.Call:
			s.execute(ctx, f)
		case workers.Cancel:
			s.w.cancel(f.Ref)
		case workers.Ack:
			s.w.finish(f.Ref, f.Taken)
		case workers.Tools:
			s.w.reportState(State{Connected: true, Refused: f.Refused})
		case workers.Drain:
			return errSentAway
		}
	}
}

// renewLeases sends the references of the worker's calls three times per lease, and its tools if they have changed.
func (s *session) renewLeases(ctx context.Context) {
	renew, look := time.Tick(s.lease/3), time.Tick(lookEvery)
	for {
		select {
		case <-renew:
			s.write(&workers.Frame{Type: workers.Beat, Held: s.w.refs()})
		case <-look:
			s.w.mu.Lock()
			draining := s.w.draining
			s.w.mu.Unlock()
			if offers := s.w.Offers(); !draining && !slices.EqualFunc(offers, s.offered, sameTool) {
				s.offered = offers
				s.write(&workers.Frame{Type: workers.Tools, Offers: offers})
			}
		case <-ctx.Done():
			return
		}
	}
}

func sameTool(a, b remote.Tool) bool { return a.Definition() == b.Definition() }

// execute starts a call. If the call is too late or the worker has no capacity, it reports that the call was not run.
func (s *session) execute(ctx context.Context, f *workers.Frame) {
	if left := s.timeLeft(f); left > 0 && s.w.start(ctx, f, left) {
		s.post(&workers.Frame{Type: workers.Started, Ref: f.Ref})
		return
	}
	s.w.countNotRun()
	s.post(&workers.Frame{Type: workers.Error, Ref: f.Ref, Code: lathe.CodeUnavailable, NotRun: true})
}

// timeLeft returns the time until the deadline of a call; 0 or less: the call must not be started.
func (s *session) timeLeft(f *workers.Frame) time.Duration {
	if f.Invoke == nil || f.Key == "" {
		return 0
	}
	now := s.gatewayNow()
	if now-time.Duration(f.AtMS)*time.Millisecond > s.lease {
		return 0 // this process was suspended for longer than its lease: another worker may have the call by now
	}
	return time.Duration(f.Invoke.DeadlineMS)*time.Millisecond - now
}
