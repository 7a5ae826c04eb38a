package oauth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/lathe-run/lathe/internal/egress"
)

// errAbsent says that there is nothing at an address.
var errAbsent = errors.New("there is none")

// get reads a JSON object. An answer that says that there is none is errAbsent.
func (c *Client) get(ctx context.Context, address string) (object, error) {
	u, err := secureURL(address)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, errors.New("is not a whole address")
	}
	req.Header.Set("Accept", "application/json")
	status, _, body, err := c.do(req)
	switch {
	case err != nil:
		return nil, err
	case status >= 400 && status < 500:
		return nil, errAbsent
	case status != http.StatusOK:
		return nil, fmt.Errorf("%s answers with HTTP %d", u.Host, status)
	}
	o, err := readObject(body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", u.Host, err)
	}
	return o, nil
}

// post sends a form or JSON text and returns the object of a success. Anything else is a *serverError.
func (c *Client) post(ctx context.Context, address, kind, body string, header http.Header) (object, error) {
	u, err := secureURL(address)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), strings.NewReader(body))
	if err != nil {
		return nil, errors.New("is not a whole address")
	}
	for name, values := range header {
		req.Header[name] = values
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Content-Type", kind)
	status, head, answer, err := c.do(req)
	if err != nil {
		return nil, err
	}
	o, err := readObject(answer)
	if status < 200 || status > 299 {
		e := &serverError{host: u.Host, status: status, nonce: c.nonces.take(u, head)}
		if err == nil {
			e.code = plainCode(o.text("error"))
		}
		return nil, e
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", u.Host, err)
	}
	return o, nil
}

func (c *Client) postForm(ctx context.Context, address string, form url.Values, header http.Header) (object, error) {
	return c.post(ctx, address, "application/x-www-form-urlencoded", form.Encode(), header)
}

// do sends one request, which is bounded in time, and whose answer is bounded in size.
func (c *Client) do(req *http.Request) (status int, head http.Header, body []byte, err error) {
	ctx, cancel := context.WithTimeout(req.Context(), requestTimeout)
	defer cancel()
	resp, err := c.http.Do(req.WithContext(ctx))
	if err != nil {
		return 0, nil, nil, fmt.Errorf("%s: %w", req.URL.Host, err)
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxMetadataBytes+1))
	switch {
	case err != nil:
		return 0, nil, nil, fmt.Errorf("%s: %w", req.URL.Host, egress.Plain(err))
	case len(body) > maxMetadataBytes:
		return 0, nil, nil, fmt.Errorf("%s: the answer has more than %d bytes", req.URL.Host, maxMetadataBytes)
	}
	return resp.StatusCode, resp.Header, body, nil
}

// A serverError is the refusal of an authorization server. Its description is not shown: it could
// hold anything, what was sent included.
type serverError struct {
	host   string
	status int
	code   string // of RFC 6749; "" where it is none
	nonce  bool   // it came with a nonce for a proof
}

func (e *serverError) Error() string {
	if e.code != "" {
		return fmt.Sprintf("%s refuses with HTTP %d, %s", e.host, e.status, e.code)
	}
	return fmt.Sprintf("%s refuses with HTTP %d", e.host, e.status)
}

// codeOf returns the code of a refusal.
func codeOf(err error) string {
	if e := (*serverError)(nil); errors.As(err, &e) {
		return e.code
	}
	return ""
}

// plainCode returns an error code that may be shown: lower-case words.
func plainCode(s string) string {
	ok := len(s) <= 64
	for i := range len(s) {
		ok = ok && (s[i] >= 'a' && s[i] <= 'z' || s[i] == '_')
	}
	if !ok {
		return ""
	}
	return s
}
