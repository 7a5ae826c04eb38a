package provider

import (
	"bytes"
	"io"
	"slices"

	"github.com/lathe-run/lathe/internal/wire"
)

// A payload is the body of a request. It may be sent again (a retry, or a transport that found its connection stale), and a transport
// may still read it after the response: it does not change.
type payload struct {
	body   []byte
	shared wire.Shared // is sent at its place in body; other payloads may have the same text
}

func (p *payload) size() int64 { return int64(len(p.body) + len(p.shared.Text)) }

// whole returns a copy of all that is sent.
func (p *payload) whole() []byte {
	return slices.Concat(p.body[:p.shared.At], p.shared.Text, p.body[p.shared.At:])
}

func (p *payload) reader() io.Reader {
	return io.MultiReader(bytes.NewReader(p.body[:p.shared.At]), bytes.NewReader(p.shared.Text), bytes.NewReader(p.body[p.shared.At:]))
}

// get is for http.Request.GetBody. A transport may call it on a goroutine of its own.
func (p *payload) get() (io.ReadCloser, error) { return io.NopCloser(p.reader()), nil }

// maxTogether is the largest body that is handed over as a copy: a transport of net/http writes the head of a
// request by itself, unless it knows that the body lies in memory. A larger body takes more than one write anyway.
const maxTogether = 4 << 10

// together returns a copy of all that is sent, in a form that net/http knows.
func (p *payload) together() io.ReadCloser { return io.NopCloser(bytes.NewReader(p.whole())) }

// A watchedBody is the body of an attempt's request.
type watchedBody struct {
	io.Reader
	watch *watch
}

func (b watchedBody) Read(p []byte) (int, error) {
	b.watch.connect()
	return b.Reader.Read(p)
}

// Close implements io.Closer. It does nothing.
func (watchedBody) Close() error { return nil }
