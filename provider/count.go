package provider

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

const (
	// countTimeout is the timeout of a request to count tokens.
	countTimeout = 10 * time.Second
	// maxCountBytes is the maximal length of the response to that request.
	maxCountBytes = 64 << 10
)

// CountTokens returns the number of input tokens of a request, as the server counts them. It makes one attempt of at most 10 s. Its errors
// are those of Generate. If the wire or the server has no method to count tokens, the error wraps [errors.ErrUnsupported]. Once the server
// has reported that, the Chat does not ask it again.
func (c *Chat) CountTokens(ctx context.Context, req *lathe.Request) (int64, error) {
	counter, ok := c.wire.(wire.Counter)
	if !ok || c.countsNot.Load() {
		return 0, lathe.CodeInvalidRequest.Wrap(c.op, errors.ErrUnsupported)
	}
	own := *req
	own.Model = cmp.Or(own.Model, c.model)
	u, err := wire.CountURL(c.base, counter, own.Model)
	if err != nil {
		return 0, lathe.CodeInvalidConfig.Wrap(c.op, err)
	}
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	opts := c.encode
	opts.Stream, opts.IncludeUsage = false, false
	opts.Takes = takes(c, own.Model, nil)
	opts.Takes.Fit(c.wire.Wire(), &own)
	adapt(c, &own, &opts.Takes)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(counter.AppendCountRequest(nil, &own, &opts)))
	if err != nil {
		return 0, lathe.CodeInvalidConfig.Errorf(c.op, "the model's name cannot stand in an address")
	}
	r.Header = maps.Clone(c.header())
	c.setAPI(r.Header, betas(c, &own, &opts), own.APIVersion)
	resp, err := c.transport.RoundTrip(r)
	if err != nil {
		return 0, c.aborted(0, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxCountBytes))
	switch status := resp.StatusCode; {
	case err != nil:
		return 0, c.aborted(status, err)
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed, status == http.StatusNotImplemented:
		c.countsNot.Store(true)
		return 0, lathe.CodeInvalidRequest.Wrap(c.op, errors.ErrUnsupported)
	case status >= 400:
		return 0, c.failure(c.fromStatus(resp, c.wire.ParseError(status, body), body))
	}
	member := "input_tokens"
	if c.wire.Wire() == lathe.WireGemini {
		member = "totalTokens"
	}
	tokens, ok := wire.ReadCount(body, member)
	if !ok {
		return 0, c.failure(c.protocol(resp.StatusCode, "the response is not a number of tokens", nil))
	}
	return tokens, nil
}

// aborted returns the error of a request that the network or the timeout ended.
func (c *Chat) aborted(status int, err error) error {
	message := c.clean(err.Error())
	return c.failure(&lathe.UpstreamError{Kind: lathe.UpstreamAborted, Status: status, Message: message, Err: &cleaned{message, err}})
}
