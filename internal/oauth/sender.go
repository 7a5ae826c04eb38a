package oauth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/lathe-run/lathe/egress"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// A sender is the transport of one request to a metadata or authorization server, which this package, oauthex or x/oauth2 builds. It
// enforces rules that these libraries do not: the URL is https or loopback, the connection belongs to the client of package egress, and the
// response is read completely, up to maxAnswerBytes. A response with a status of 2xx must be one strict JSON object; its Content-Type is
// ignored.
type sender struct {
	next http.RoundTripper
	// Set for the method error:
	host   string // host of the URL, after the URL has been checked
	status int    // status of the response; 0: none
	err    error  // error of the transport itself, with a fixed text
}

// RoundTrip implements http.RoundTripper.
func (s *sender) RoundTrip(req *http.Request) (*http.Response, error) {
	if _, err := secureURL(req.URL.String()); err != nil {
		closeBody(req)
		s.err = err
		return nil, err
	}
	s.host = req.URL.Host
	req = req.Clone(req.Context())
	req.Header.Set("Accept", "application/json")
	resp, err := s.next.RoundTrip(req)
	if err != nil {
		s.err = egress.Plain(err)
		return nil, s.err
	}
	defer resp.Body.Close()
	s.status = resp.StatusCode
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswerBytes+1))
	object := rawjson.IsObject(body, rawjson.Limits{})
	switch {
	case err != nil:
		s.err = egress.Plain(err)
	case len(body) > maxAnswerBytes:
		s.err = fmt.Errorf("the answer has more than %d bytes", maxAnswerBytes)
	case !object && isSuccess(s.status):
		s.err = errors.New("the answer is not a JSON object")
	}
	if s.err != nil {
		return nil, s.err
	}
	if object {
		resp.Header.Set("Content-Type", "application/json") // x/oauth2 parses other types as a form
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

func isSuccess(status int) bool { return status >= 200 && status <= 299 }

// error returns the error that replaces err, the error of a library. The text of err is dropped, because it may quote the request or the
// response. The new error has the host, the status, and the error code of the protocol.
func (s *sender) error(err error) error {
	var (
		guard *egress.Error
		token *oauth2.RetrieveError
		reg   *oauthex.ClientRegistrationError
	)
	switch {
	case s.err != nil:
		return fmt.Errorf("%s: %w", s.host, s.err)
	case errors.As(err, &guard): // a redirect, which is not followed
		return fmt.Errorf("%s: %w", s.host, guard)
	case errors.As(err, &token):
		return &serverError{s.host, s.status, plainCode(token.ErrorCode)}
	case errors.As(err, &reg):
		return &serverError{s.host, s.status, plainCode(reg.ErrorCode)}
	case s.status == 0:
		return egress.Plain(err)
	case !isSuccess(s.status):
		return &serverError{host: s.host, status: s.status}
	}
	return fmt.Errorf("%s: %w", s.host, errUnusable)
}

// errUnusable means that a response is a JSON object without the required members.
var errUnusable = errors.New("the answer cannot be used")

// send calls do with a client whose transport is a sender, and cancels the context of do after requestTimeout. do sends one request. The
// error of send quotes nothing of the request or the response.
func (c *Client) send(ctx context.Context, do func(context.Context, *http.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	client := *c.http.HTTP()
	s := &sender{next: client.Transport, host: "the address"}
	client.Transport = s
	if err := do(ctx, &client); err != nil {
		return s.error(err)
	}
	return nil
}

// get decodes the JSON object at a URL into a struct. It ignores a member whose type is not that of its field.
func (c *Client) get(ctx context.Context, address string, into any) error {
	return c.send(ctx, func(ctx context.Context, client *http.Client) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return errUnusable // send adds the status
		}
		err = json.NewDecoder(resp.Body).Decode(into)
		if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return nil
		}
		return err
	})
}

// A serverError is a response with a status other than 2xx, or with an error code. Its description is dropped, because it could contain
// anything, including the request.
type serverError struct {
	host   string
	status int
	code   string // error code of RFC 6749, or ""
}

func (e *serverError) Error() string {
	if e.code != "" {
		return fmt.Sprintf("%s refuses with HTTP %d, %s", e.host, e.status, e.code)
	}
	return fmt.Sprintf("%s answers with HTTP %d", e.host, e.status)
}

// isAbsent reports whether err means that the URL does not exist.
func isAbsent(err error) bool {
	e, ok := errors.AsType[*serverError](err)
	return ok && e.status >= 400 && e.status <= 499
}

// codeOf returns the protocol error code in err, or "".
func codeOf(err error) string {
	if e, ok := errors.AsType[*serverError](err); ok {
		return e.code
	}
	return ""
}

// plainCode returns s if it is a harmless error code (lower-case letters and underscores, at most 64 bytes), else "".
func plainCode(s string) string {
	if len(s) > 64 || strings.ContainsFunc(s, func(r rune) bool { return (r < 'a' || r > 'z') && r != '_' }) {
		return ""
	}
	return s
}
