package httptool

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/text"
)

// accepted is the value of the Accept header: the media types that can be read.
const accepted = "application/json, application/*+json;q=0.9, text/*;q=0.8, image/*;q=0.5"

// A message is a request that can be sent several times.
type message struct {
	method, url string
	header      http.Header
	body        []byte
}

// build returns the request for valid arguments.
func (t *httpTool) build(raw []byte, meta *lathe.CallMeta) (*message, error) {
	args := map[string][]byte{}
	for k, v := range rawjson.Members(raw) {
		name := rawjson.Text(k)
		if v[0] != 'n' || t.nulls[name] { // otherwise null counts as absent
			args[name] = v
		}
	}
	m := &message{method: t.def.Method, header: http.Header{}}
	path := map[string]string{}
	var query, cookies []string
	for i := range t.def.Parameters {
		p := &t.def.Parameters[i]
		v := args[p.Name]
		if v == nil {
			continue
		}
		var err error
		var parts []string
		switch p.In {
		case InPath:
			path[p.wireName()], err = p.pathValue(v)
		case InQuery:
			parts, err = p.queryParts(v, percent, t.names[InQuery])
			query = append(query, parts...)
		case InHeader:
			var s string
			s, err = p.headerValue(v)
			m.header.Set(p.wireName(), s)
		case InCookie:
			parts, err = p.queryParts(v, percent, t.names[InCookie])
			cookies = append(cookies, parts...)
		case InBody: // t.body encodes them together
		}
		if err != nil {
			return nil, err
		}
	}
	var err error
	if m.url, err = t.url.fill(path); err != nil {
		return nil, err
	}
	var contentType string
	if m.body, contentType, err = t.body(args); err != nil {
		return nil, err
	}
	if m.body != nil {
		m.header.Set("Content-Type", contentType)
	}
	m.header.Set("Accept", accepted)
	m.header.Set("User-Agent", "lathe")
	if t.spec.Effect == lathe.Idempotent && meta != nil && meta.IdempotencyKey != "" {
		m.header.Set("Idempotency-Key", meta.IdempotencyKey)
	}
	t.authorize(m, query, cookies)
	return m, nil
}

func percent(s string) string { return escape(s, "") }

// authorize adds the credentials, which replace everything else of the same name.
func (t *httpTool) authorize(m *message, query, cookies []string) {
	c := &t.def.Credentials
	for name, v := range c.Headers {
		m.header.Set(name, v.Reveal())
	}
	for name, value := range text.ByName(c.Query) {
		query = append(query, percent(name)+"="+percent(value.Reveal()))
	}
	for name, value := range text.ByName(c.Cookies) {
		cookies = append(cookies, name+"="+value.Reveal())
	}
	if len(query) > 0 {
		m.url += "?" + strings.Join(query, "&")
	}
	if len(cookies) > 0 {
		m.header.Set("Cookie", strings.Join(cookies, "; "))
	}
}

// request returns the HTTP request of one attempt.
func (m *message) request(ctx context.Context) (*http.Request, error) {
	var body io.Reader
	if m.body != nil {
		body = bytes.NewReader(m.body)
	}
	req, err := http.NewRequestWithContext(ctx, m.method, m.url, body)
	if err != nil {
		return nil, &lathe.Error{Code: lathe.CodeInternal, Op: "httptool: make a request"} // without the cause, which contains the URL
	}
	req.Header = m.header.Clone()
	if t := event.TraceFrom(ctx); t.Parent != "" {
		req.Header.Set("Traceparent", t.Parent)
		if t.Baggage != "" {
			req.Header.Set("Baggage", t.Baggage)
		}
	}
	return req, nil
}
