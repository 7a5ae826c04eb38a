package httptool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/egress"
	"github.com/lathe-run/lathe/internal/oauth"
	"github.com/lathe-run/lathe/internal/reconnect"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/tool"
)

// This file makes a tool of a [Definition], and sends the requests of its calls.

// firstBackoff is the pause before the second attempt of a call if the server does not send Retry-After.
const firstBackoff = 200 * time.Millisecond

// Options configure a tool of [New].
type Options struct {
	// MaxAttempts is the maximum number of requests for one call; 0: 3. Only read-only calls, and idempotent ones that send an
	// Idempotency-Key, are repeated.
	MaxAttempts int
	// Wait, if not nil, is called between two attempts in place of a timer. It must block for d, or return ctx.Err() if ctx is done first.
	Wait func(ctx context.Context, d time.Duration) error
	// Tokens returns the tokens that the client adds to requests if Definition.OAuth is set, so that they can be removed from answers; nil:
	// none.
	Tokens func() []secret.Secret
	// LoginCommand tells the user how to get a token that is missing, for example "run acme login". It is part of error texts, and is not
	// executed.
	LoginCommand string
}

// A FieldError is an error in one field of a [Definition]. The errors of [New] wrap it.
type FieldError struct {
	Field string // url, method, body, allowlist, credentials, oauth, parameters, or parameters.NAME
	Err   error
}

// Error returns the text of Err.
func (e *FieldError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *FieldError) Unwrap() error { return e.Err }

func wrong(field string, err error) error { return &FieldError{field, err} }

// httpTool is a tool that is one HTTP request.
type httpTool struct {
	def    Definition
	spec   lathe.ToolSpec
	url    *template
	client *egress.Client
	opts   Options
	secret [][]byte                  // values that no answer may contain
	names  map[Place]map[string]bool // names in use in a query, a header and a cookie: no member of an exploded object may have them
	nulls  map[string]bool           // arguments for which null is a value: members of the body
}

var _ lathe.Tool = (*httpTool)(nil)

// New returns the tool that d describes. client sends its requests and must allow the origin of d.URL. A nil client allows only that
// origin, and no private address: pass a client of [egress.New] for servers in a private network, or to share connections between tools.
// opts may be nil. d is copied. The error has the code invalid_config and wraps a [*FieldError].
//
// The output of a call is the body of the response: JSON unchanged, text as a JSON string, a PNG, JPEG, GIF or WebP image as a blob, and
// null for an empty body. Any other body ends the call with invalid_output. For a status from 300 on, the output has IsError, the member
// http_status and the members of the body. If the body is not an object, the output has it in the member body. A body above 16 KiB is
// omitted.
func New(d *Definition, client *egress.Client, opts *Options) (lathe.Tool, error) {
	t := &httpTool{def: *d, client: client, names: map[Place]map[string]bool{InQuery: {}, InHeader: {}, InCookie: {}}, nulls: map[string]bool{}}
	if opts != nil {
		t.opts = *opts
	}
	if t.opts.MaxAttempts <= 0 {
		t.opts.MaxAttempts = 3
	}
	if t.opts.Wait == nil {
		t.opts.Wait = reconnect.Wait
	}
	t.def.Parameters = slices.Clone(d.Parameters)
	if err := t.prepare(); err != nil {
		return nil, lathe.CodeInvalidConfig.Wrap("httptool: "+d.Name, err)
	}
	return t, nil
}

func (t *httpTool) prepare() error {
	d := &t.def
	if d.Method == "" {
		d.Method = http.MethodGet
	}
	switch d.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
	default:
		return wrong("method", fmt.Errorf("no tool is made of the method %s", strconv.Quote(d.Method)))
	}
	if d.Effect == lathe.EffectUndeclared {
		d.Effect = lathe.Writes
		if d.Method == http.MethodGet || d.Method == http.MethodHead {
			d.Effect = lathe.ReadOnly
		}
	}
	if len(d.Allowlist) == 0 {
		return wrong("allowlist", errors.New(`no allowlist: name the fields of the answer that the model may see ("*" for all)`))
	}
	var err error
	if t.url, err = parseTemplate(d.URL); err != nil {
		return wrong("url", err)
	}
	if t.client == nil {
		if t.client, err = clientOf(t.url.base); err != nil {
			return wrong("url", err)
		}
	}
	for i := range d.Parameters {
		if err := d.Parameters[i].check(); err != nil {
			return wrong("parameters."+d.Parameters[i].Name, err)
		}
	}
	if err := t.checkPath(); err != nil {
		return wrong("parameters", err)
	}
	if err := t.checkBody(); err != nil {
		return wrong("body", err)
	}
	if err := d.Credentials.check(); err != nil {
		return wrong("credentials", err)
	}
	for name := range d.Credentials.Headers {
		if d.OAuth && strings.EqualFold(name, "Authorization") {
			return wrong("oauth", errors.New("the tool has an Authorization besides: it has one of both"))
		}
	}
	if err := t.reserve(); err != nil {
		return wrong("parameters", err)
	}
	args, unchecked, err := d.argsSchema()
	if err != nil {
		return wrong("parameters", err)
	}
	t.spec = lathe.ToolSpec{
		Name: d.Name, Description: d.Description, Schema: args, UncheckedParts: unchecked, Effect: d.Effect, Allowlist: append(slices.Clone(d.Allowlist), statusField),
		Timeout: d.Timeout, CacheTTL: d.CacheTTL, Concurrency: d.Concurrency, Rate: d.Rate, Backend: d.Backend, Origin: d.Origin,
	}
	return nil
}

// clientOf returns a client that allows one origin, at public addresses.
func clientOf(origin string) (*egress.Client, error) {
	u, err := url.Parse(origin)
	if err != nil {
		return nil, errors.New("the address is not a URL")
	}
	rules := &egress.Rules{Hosts: []string{u.Hostname()}, Schemes: []string{u.Scheme}}
	if port := u.Port(); port != "" {
		n, err := strconv.Atoi(port)
		if err != nil {
			return nil, errors.New("the port of the address is not a number")
		}
		rules.Ports = []int{n}
	} else if u.Scheme == "http" {
		rules.Ports = []int{80}
	}
	client, err := egress.New(rules, nil)
	if err != nil {
		return nil, err
	}
	return client, client.Check(origin)
}

// checkPath returns an error unless the placeholders in the path and the parameters for the path correspond.
func (t *httpTool) checkPath() error {
	var have []string
	for i := range t.def.Parameters {
		if p := &t.def.Parameters[i]; p.In == InPath {
			name := p.wireName()
			if !slices.Contains(t.url.names, name) {
				return fmt.Errorf("parameter %q: the path has no {%s}", p.Name, name)
			}
			if slices.Contains(have, name) {
				return fmt.Errorf("two parameters fill {%s} of the path", name)
			}
			have = append(have, name)
		}
	}
	for _, name := range t.url.names {
		if !slices.Contains(have, name) {
			return fmt.Errorf("the path has {%s}, and no parameter fills it", name)
		}
	}
	return nil
}

func (t *httpTool) checkBody() error {
	d := &t.def
	n, whole := 0, false
	for i := range d.Parameters {
		if p := &d.Parameters[i]; p.In == InBody {
			n++
			whole = whole || p.Whole
			t.nulls[p.Name] = true
		}
	}
	if d.Body == "" {
		d.Body = typeJSON
	}
	switch typ := mediaType(d.Body); {
	case n > 0 && (d.Method == http.MethodGet || d.Method == http.MethodHead):
		return fmt.Errorf("a %s request has no body", d.Method)
	case whole && n > 1:
		return errors.New("a body that is one whole value has no further parameters")
	case isJSON(typ), typ == typeForm, typ == typeMultipart:
	case isText(typ):
		if n > 1 {
			return errors.New("a body of text has one parameter")
		}
	default:
		return fmt.Errorf("a body of type %q cannot be written: JSON, forms and text can", d.Body)
	}
	return nil
}

// reserve records the names in the request that are in use. Credentials come first, so that no parameter has the name of one.
func (t *httpTool) reserve() error {
	c := &t.def.Credentials
	for _, in := range []struct {
		place  Place
		values map[string]secret.Secret
	}{{InHeader, c.Headers}, {InQuery, c.Query}, {InCookie, c.Cookies}} {
		for name, v := range in.values {
			t.names[in.place][uniqueName(in.place, name)] = true
			t.hide(v.Reveal())
		}
	}
	for i := range t.def.Parameters {
		p := &t.def.Parameters[i]
		names, name := t.names[p.In], uniqueName(p.In, p.wireName())
		if names == nil {
			continue // checkPath and checkBody check it
		}
		if names[name] {
			return fmt.Errorf("parameter %q: %q of the %s is taken, by a credential or another parameter", p.Name, p.wireName(), p.In)
		}
		names[name] = true
	}
	return nil
}

// uniqueName returns the spelling of a name that is the same for all equal names in a place.
func uniqueName(place Place, name string) string {
	if place == InHeader {
		return http.CanonicalHeaderKey(name)
	}
	return name
}

// Spec returns the tool's definition.
func (t *httpTool) Spec() *lathe.ToolSpec { return &t.spec }

// Call sends the request and converts the answer. It repeats a failed request if the effect of the tool allows that.
func (t *httpTool) Call(ctx context.Context, args json.RawMessage) (*lathe.Output, error) {
	m, err := t.build(args, lathe.CallMetaFrom(ctx))
	if err != nil {
		return nil, err
	}
	repeatable := t.spec.Effect == lathe.ReadOnly || t.spec.Effect == lathe.Idempotent && m.header.Get("Idempotency-Key") != ""
	backoff := firstBackoff
	for attempt := 1; ; attempt++ {
		out, after, err := t.once(ctx, m)
		if !repeatable || attempt >= t.opts.MaxAttempts || after < 0 {
			return out, err
		}
		if after == 0 {
			after = backoff + rand.N(backoff/2)
			backoff *= 2
		}
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < after {
			return out, err // a known error is better than a timeout
		}
		if t.opts.Wait(ctx, after) != nil {
			return out, err
		}
	}
}

// never, as any negative value, is the pause before the next attempt if none must be made.
const never time.Duration = -1

// once makes one attempt. after is the pause before the next one; 0 means that the server asks for none in particular.
func (t *httpTool) once(ctx context.Context, m *message) (out *lathe.Output, after time.Duration, err error) {
	req, err := m.request(ctx)
	if err != nil {
		return nil, never, err
	}
	resp, err := t.client.Do(req)
	if err != nil {
		after = never
		if e := egress.Plain(err); e.Unsent && !e.Refused {
			after = 0
		}
		return nil, after, t.failed(err)
	}
	defer func() { _ = resp.Body.Close() }() // the needed part was read
	out, err = t.answer(resp)
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return out, reconnect.RetryAfter(resp.Header.Get("Retry-After")), err
	}
	return out, never, err
}

// unauthorized returns the error for a request without a token.
func (t *httpTool) unauthorized(e *egress.Error) error {
	next := ""
	if t.opts.LoginCommand != "" {
		next = ": " + t.opts.LoginCommand
	}
	if _, ok := errors.AsType[*oauth.LoginError](e); ok {
		return fmt.Errorf("%w (%w)", tool.Fail(lathe.CodeUnavailable, "the server of this tool needs a person to log in%s", next), e)
	}
	if _, ok := errors.AsType[*oauth.StoreError](e); ok {
		return fmt.Errorf("%w (%w)", tool.Fail(lathe.CodeUnavailable, "the tokens of this tool cannot be used: its operator has to find out why"), e)
	}
	// Other errors of obtaining tokens have fixed texts, with the codes of the protocol at most.
	return fmt.Errorf("%w (%w)", tool.Fail(lathe.CodeUnavailable, "the server of this tool wants a token, and there is none: %s", errors.Unwrap(e)), e)
}

// failed converts an error of the egress client to one of the tool. Its text is fixed, so the model may receive it.
func (t *httpTool) failed(err error) error {
	e := egress.Plain(err)
	if e.Code == egress.CodeCredential {
		return t.unauthorized(e)
	}
	code := lathe.CodeExecutionFailed
	switch e.Code {
	case egress.CodeTimeout:
		code = lathe.CodeTimeout
	case egress.CodeCancelled:
		code = lathe.CodeCancelled
	case egress.CodeBodyTooLarge:
		code = lathe.CodeOutputTooLarge
	case egress.CodeEncodingRefused, egress.CodeCompressionRatio:
		code = lathe.CodeInvalidOutput
	case egress.CodeResolve, egress.CodeConnect, egress.CodeTLS:
		code = lathe.CodeUnavailable
	default:
		if e.Refused {
			code = lathe.CodeUnavailable
		}
	}
	return fmt.Errorf("%w (%w)", tool.Fail(code, "%s", e.Error()), e)
}
