package sim

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"sync"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/provider"
)

// A Model is a simulated model that runs in this process. It implements [lathe.Model].
type Model struct {
	sim  *Sim
	name string
}

var _ lathe.Model = (*Model)(nil)

// Model returns the model with this name; "" means sim/demo. If no model has the name, Generate yields an error of code invalid_request.
func (s *Sim) Model(name string) *Model {
	if name == "" {
		name = DemoModel
	}
	return &Model{sim: s, name: name}
}

// Describe returns the description of the model: [Provider] and its name. The dialect is "native", also for a name with +DIALECT, whose calls
// are in its text.
func (m *Model) Describe() lathe.ModelInfo {
	return lathe.ModelInfo{Provider: Provider, Model: m.name, Dialect: "native"}
}

// Generate streams one turn of the model that req names or, if req.Model is "", of m. The answer of a model with a fault is encoded as the
// server of the simulator sends it, and decoded again, without a network. As the server does, Generate yields an error for a history with a
// call without a result, or a result without a call. Unlike the server, it accepts arguments that are not a JSON object, because the wire's
// encoder replaces them.
func (m *Model) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		r := *req
		if r.Model == "" {
			r.Model = m.name
		}
		sp, err := m.sim.parse(r.Model)
		if err != nil {
			yield(lathe.Delta{}, lathe.CodeInvalidRequest.Wrap("sim", err))
			return
		}
		if sp.fault != nil {
			m.overWire(ctx, sp.fault, &r, yield)
			return
		}
		t, err := m.sim.turn(chatCompletions, &sp, &r)
		var bad *wire.APIError
		if errors.As(err, &bad) {
			yield(lathe.Delta{}, upstream(bad))
			return
		}
		if err != nil {
			yield(lathe.Delta{}, lathe.CodeInvalidRequest.Wrap("sim", err))
			return
		}
		if !wait(ctx, t.Delay) {
			yield(lathe.Delta{}, cancelled(ctx))
			return
		}
		if t.Status != 0 {
			yield(lathe.Delta{}, upstream(&wire.APIError{Status: t.Status, Message: t.Message}))
			return
		}
		pause, stopped := sp.pause(m.sim.opts.TokenDelay), false
		fin := t.finished(chatCompletions, &r)
		isComplete := deltas(&fin.Message, func(d lathe.Delta) bool {
			stopped = !yield(d, nil)
			return !stopped && wait(ctx, pause)
		})
		if stopped {
			return
		}
		switch {
		case !isComplete:
			yield(lathe.Delta{}, cancelled(ctx))
		case t.Cut:
			yield(lathe.Delta{}, lathe.CodeUpstream.Wrap("sim", &lathe.UpstreamError{Kind: lathe.UpstreamAborted, Err: io.ErrUnexpectedEOF}))
		default:
			yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: fin}, nil)
		}
	}
}

func cancelled(ctx context.Context) error {
	return lathe.CodeCancelled.Wrap("sim", context.Cause(ctx))
}

func upstream(e *wire.APIError) error {
	kind := lathe.Upstream4xx
	switch {
	case e.Status == http.StatusTooManyRequests:
		kind = lathe.UpstreamRateLimited
	case e.Status == http.StatusRequestTimeout:
		kind = lathe.UpstreamTimeout
	case e.Status >= 500:
		kind = lathe.Upstream5xx
	}
	return lathe.CodeUpstream.Wrap("sim", &lathe.UpstreamError{Kind: kind, Status: e.Status, ProviderCode: e.Code, Message: e.Message, Detail: e.Message})
}

// overWire sends the request to the handler in memory, on chat completions or, if the fault is not for that wire, on the first of its
// wires.
func (m *Model) overWire(ctx context.Context, f *Fault, req *lathe.Request, yield func(lathe.Delta, error) bool) {
	w := lathe.WireOpenAIChat
	if !f.On(w) {
		w = f.Wires[0]
	}
	client, err := provider.New(w, req.Model, &provider.Options{Name: Provider, BaseURL: "http://sim.invalid", Transport: m.sim.Transport(),
		Timeouts: provider.Timeouts{Client: -1, Open: -1}, Retry: provider.Retry{Attempts: 1}})
	if err != nil {
		yield(lathe.Delta{}, err)
		return
	}
	own := *req
	own.Relay = nil // no server receives the bytes
	client.Generate(ctx, &own)(yield)
}

// Transport returns an http.RoundTripper that passes requests to [Sim.Handler] in this process, so that HTTP clients can use the simulated
// server without a network.
func (s *Sim) Transport() http.RoundTripper { return transport{s.Handler()} }

type transport struct{ handler http.Handler }

// RoundTrip runs the handler on a goroutine. The goroutine ends when the handler returns; closing the body cancels it.
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	pr, pw := io.Pipe()
	w := &pipeWriter{header: http.Header{}, pw: pw, ready: make(chan struct{})}
	in := req.Clone(ctx)
	if in.Body == nil {
		in.Body = http.NoBody
	}
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		defer func() {
			err := io.EOF
			if recover() != nil { // http.ErrAbortHandler: the connection breaks off
				err = io.ErrUnexpectedEOF
			}
			w.WriteHeader(http.StatusOK)
			_ = pw.CloseWithError(err) // always nil
			_ = in.Body.Close()        // the transport must close the request's body
		}()
		t.handler.ServeHTTP(w, in)
	}()
	body := &pipeBody{PipeReader: pr, cancel: cancel, finished: finished}
	select {
	case <-w.ready:
	case <-ctx.Done():
		_ = body.Close() // always nil
		return nil, context.Cause(ctx)
	}
	return &http.Response{Status: http.StatusText(w.status), StatusCode: w.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: body, ContentLength: -1, Request: req}, nil
}

type pipeBody struct {
	*io.PipeReader
	cancel   context.CancelFunc
	finished chan struct{}
}

// Close cancels the handler and waits until it has returned.
func (b *pipeBody) Close() error {
	b.cancel()
	err := b.PipeReader.Close()
	<-b.finished
	return err
}

type pipeWriter struct {
	header http.Header
	pw     *io.PipeWriter
	once   sync.Once
	status int
	ready  chan struct{}
}

func (w *pipeWriter) Header() http.Header { return w.header }

func (w *pipeWriter) WriteHeader(status int) {
	w.once.Do(func() {
		w.status = status
		w.header = w.header.Clone()
		close(w.ready)
	})
}

func (w *pipeWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.pw.Write(p)
}

func (w *pipeWriter) Flush() {}
