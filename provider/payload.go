package provider

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lathe-run/lathe/internal/wire"
)

// A payload is the body of a request. It may be sent again (a retry, or a transport that found its connection stale), and counts its
// readers: while one is open, a transport may still read, even after the response, and the bytes must not change.
type payload struct {
	body   []byte
	shared wire.Shared // is sent at its place in body; other payloads may have the same text
	open   atomic.Int32
	get    func() (io.ReadCloser, error) // for http.Request.GetBody
	fresh  []payloadReader               // not used yet: no reader is used twice
}

// pieces returns what is sent, in order.
func (p *payload) pieces() [3][]byte {
	return [3][]byte{p.body[:p.shared.At], p.shared.Text, p.body[p.shared.At:]}
}

func newPayload() *payload {
	p := &payload{}
	p.get = func() (io.ReadCloser, error) { // a transport may call it on a goroutine of its own
		p.open.Add(1)
		return &payloadReader{p: p}, nil
	}
	return p
}

func (p *payload) size() int64 {
	return int64(len(p.body) + len(p.shared.Text))
}

// readersAtOnce is how many readers are made in one piece of memory.
const readersAtOnce = 8

// newReader returns a reader that notes when it is read, in time from made, unless that is zero.
func (p *payload) newReader(made time.Time) *payloadReader {
	if len(p.fresh) == 0 {
		p.fresh = make([]payloadReader, readersAtOnce)
	}
	r := &p.fresh[0]
	p.fresh = p.fresh[1:]
	p.open.Add(1)
	r.p, r.made = p, made
	return r
}

// maxTogether is the largest body that is handed over as a copy: a transport of net/http writes the head of a
// request by itself, unless it knows that the body lies in memory. A larger body takes more than one write anyway.
const maxTogether = 4 << 10

// together returns a copy of the pieces, in a form that net/http knows. The copy is the transport's.
func (p *payload) together() io.ReadCloser { return io.NopCloser(bytes.NewReader(p.whole())) }

// whole returns a copy of the pieces.
func (p *payload) whole() []byte {
	b := make([]byte, 0, p.size())
	for _, piece := range p.pieces() {
		b = append(b, piece...)
	}
	return b
}

// idle reports whether no reader is open.
func (p *payload) idle() bool { return p.open.Load() == 0 }

// A payloadReader reads a payload once. HTTP/2 closes a body while another goroutine reads it,
// hence the lock: once Close has returned, nothing reads any more.
type payloadReader struct {
	made time.Time
	read atomic.Int64 // 1 + nanoseconds from made to the last Read; 0: none yet

	mu    sync.Mutex
	p     *payload // nil once closed
	piece int
	pos   int
}

// lastRead returns when a transport last read, or took a connection to write to. Where it never did, it had none.
func (r *payloadReader) lastRead() (time.Time, bool) {
	n := r.read.Load()
	return r.made.Add(time.Duration(n - 1)), n != 0
}

// touch notes that the transport is at work on the body.
func (r *payloadReader) touch() {
	read := int64(1)
	if !r.made.IsZero() {
		read += int64(time.Since(r.made))
	}
	r.read.Store(read)
}

func (r *payloadReader) Read(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.p == nil {
		return 0, http.ErrBodyReadAfterClose
	}
	r.touch()
	n, pieces := 0, r.p.pieces()
	for ; r.piece < len(pieces); r.piece, r.pos = r.piece+1, 0 {
		src := pieces[r.piece]
		m := copy(b[n:], src[r.pos:])
		n += m
		if r.pos += m; r.pos < len(src) {
			return n, nil
		}
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// Close ends the reading. It may be called more than once.
func (r *payloadReader) Close() error {
	r.end()
	return nil
}

func (r *payloadReader) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.p != nil {
		r.p.open.Add(-1)
		r.p = nil
	}
}
