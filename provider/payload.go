package provider

import (
	"bytes"
	"io"
	"slices"

	"github.com/lathe-run/lathe/internal/wire"
)

// A payload is the body of a request. It does not change, because it may be sent again (a retry, or a transport whose connection was
// closed), and a transport may still read it after the response.
type payload struct {
	body   []byte
	shared wire.Shared // text that is inserted at shared.At; other payloads may share it
}

func (p *payload) size() int64 { return int64(len(p.body) + len(p.shared.Text)) }

// whole returns a copy of the complete body.
func (p *payload) whole() []byte {
	return slices.Concat(p.body[:p.shared.At], p.shared.Text, p.body[p.shared.At:])
}

// reader returns a reader of the complete body.
func (p *payload) reader() io.Reader {
	return io.MultiReader(bytes.NewReader(p.body[:p.shared.At]), bytes.NewReader(p.shared.Text), bytes.NewReader(p.body[p.shared.At:]))
}

// get implements http.Request.GetBody. A transport may call it on another goroutine.
func (p *payload) get() (io.ReadCloser, error) { return io.NopCloser(p.reader()), nil }

// maxTogether is the largest body, in bytes, that is passed to net/http as a bytes.Reader: net/http writes head and body of a request
// together only if it knows that the body is in memory. A larger body takes several writes anyway.
const maxTogether = 4 << 10

// together returns a copy of the complete body, in a type that net/http recognizes as memory.
func (p *payload) together() io.ReadCloser { return io.NopCloser(bytes.NewReader(p.whole())) }

// A watchedBody is the body of an attempt's request. Each Read calls connect of the watch.
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
