package httptool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/egress"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/httptool"
)

func newSet(t *testing.T, client *egress.Client, opts *httptool.Options, defs ...*httptool.Definition) *tool.Set {
	t.Helper()
	var tools []lathe.Tool
	for _, d := range defs {
		one, err := httptool.New(d, client, opts)
		if err != nil {
			t.Fatal(err)
		}
		tools = append(tools, one)
	}
	set, err := tool.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv
}

// What becomes of an answer, by its status and content type.
func TestAnswers(t *testing.T) {
	t.Parallel()
	type reply struct {
		status    int
		typ, body string
	}
	var now reply
	srv := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = nil
		if now.typ != "" {
			w.Header().Set("Content-Type", now.typ)
		}
		w.WriteHeader(now.status)
		_, _ = io.WriteString(w, now.body)
	})
	client := loopback(t, srv.URL)
	def := func(name string, allow ...string) *httptool.Definition {
		return &httptool.Definition{Name: name, URL: srv.URL, Allowlist: allow}
	}
	set := newSet(t, client, &httptool.Options{MaxAttempts: 1}, def("all", "*"), def("some", "a", "error.message"))
	const failedText = `{"ok":false,"error":{"code":"execution_failed","message":"The tool failed. Check the arguments and try once more, or go on without it."}`
	for _, tt := range []struct {
		reply
		tool, want string
		code       lathe.Code
	}{
		{reply{200, "application/json", `{"a":1,"b":2}`}, "all", `{"a":1,"b":2}`, ""},
		{reply{200, "application/json; charset=utf-8", `{"a":1,"b":2}`}, "some", `{"a":1}`, ""},
		{reply{200, "application/problem+json", `[1]`}, "all", `[1]`, ""},
		{reply{200, "application/json", `{"a":12345678901234567890}`}, "some", `{"a":12345678901234567890}`, ""},
		{reply{200, "application/json", `{"a":1,"a":2}`}, "all", "", lathe.CodeInvalidOutput},
		{reply{200, "application/json", `{"a":`}, "all", "", lathe.CodeInvalidOutput},
		{reply{200, "application/json", ``}, "all", `null`, ""},
		{reply{204, "", ``}, "some", `null`, ""},
		{reply{200, "text/plain", "a \"b\""}, "all", `a "b"`, ""},
		{reply{200, "text/html; charset=ISO-8859-1", "\xe9"}, "all", `é`, ""},
		{reply{200, "text/plain; charset=shift-jis", "x"}, "all", "", lathe.CodeInvalidOutput},
		{reply{200, "text/plain", "\xff"}, "all", "\uFFFD", ""},
		{reply{200, "text/plain", "x"}, "some", "", lathe.CodeRedactionFailed},
		{reply{200, "application/json", `{"b":2}`}, "some", "", lathe.CodeRedactionFailed},
		{reply{200, "", "plain"}, "all", "plain", ""},
		{reply{200, "", "\x00\xff"}, "all", "", lathe.CodeInvalidOutput},
		{reply{200, "application/pdf", "%PDF"}, "all", "", lathe.CodeInvalidOutput},
		{reply{200, "application/octet-stream", "x"}, "all", "", lathe.CodeInvalidOutput},
		{reply{200, "image/svg+xml", "<svg/>"}, "all", "<svg/>", ""},
		{reply{200, "nonsense;;", "x"}, "all", "", lathe.CodeInvalidOutput},
		{reply{404, "application/json", `{"a":1,"b":2,"error":{"message":"m","trace":"t"}}`}, "some", failedText + `,"data":{"http_status":404,"a":1,"error":{"message":"m"}}}`, lathe.CodeExecutionFailed},
		{reply{404, "application/json", `{"http_status":200}`}, "all", failedText + `,"data":{"http_status":404}}`, lathe.CodeExecutionFailed},
		{reply{400, "text/plain", `no`}, "all", failedText + `,"data":{"http_status":400,"body":"no"}}`, lathe.CodeExecutionFailed},
		{reply{400, "text/plain", `no`}, "some", failedText + `,"data":{"http_status":400}}`, lathe.CodeExecutionFailed},
		{reply{400, "application/json", `{"a":`}, "all", failedText + `,"data":{"http_status":400}}`, lathe.CodeExecutionFailed},
		{reply{500, "application/json", `{"a":"` + strings.Repeat("x", 16<<10) + `"}`}, "all", failedText + `,"data":{"http_status":500}}`, lathe.CodeExecutionFailed},
		{reply{304, "", ``}, "all", failedText + `,"data":{"http_status":304}}`, lathe.CodeExecutionFailed},
		{reply{429, "", ``}, "all", "", lathe.CodeRateLimited},
		{reply{503, "", ``}, "all", "", lathe.CodeUnavailable},
	} {
		now = tt.reply
		r := call(t, set, tt.tool, `{}`)
		if r.Code != tt.code || tt.want != "" && r.Content != tt.want {
			t.Errorf("%+.60v with %s:\n got %s %s\nwant %s %s", tt.reply, tt.tool, r.Code, r.Content, tt.code, tt.want)
		}
	}
	now = reply{200, "image/png", "<script>"} // an image in name only
	if r := call(t, set, "all", `{}`); r.Code != lathe.CodeInvalidOutput || len(r.Blobs) != 0 {
		t.Errorf("a script as an image: got %+v", r)
	}
	now = reply{200, "image/png", "\x89PNG\r\n\x1a\n"}
	if r := call(t, set, "all", `{}`); r.IsError || len(r.Blobs) != 1 || r.Blobs[0].MediaType != "image/png" || string(r.Blobs[0].Data) != "\x89PNG\r\n\x1a\n" {
		t.Errorf("an image: got %+v", r)
	}
	if r := call(t, set, "some", `{}`); r.Code != lathe.CodeRedactionFailed || r.Blobs != nil {
		t.Errorf("an image under an allowlist of fields: got %+v", r)
	}
}

// Requests are sent again only where the effect allows, with the same key, and no longer than a server may ask for.
func TestRetries(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var replies []int
	var keys []string
	after := ""
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		status := replies[0]
		replies = replies[1:]
		if after != "" && status >= 400 {
			w.Header().Set("Retry-After", after)
		}
		w.WriteHeader(status)
	})
	var waits []time.Duration
	opts := &httptool.Options{Wait: func(_ context.Context, d time.Duration) error {
		waits = append(waits, d)
		return nil
	}}
	def := func(name, method string, effect lathe.Effect) *httptool.Definition {
		return &httptool.Definition{Name: name, Method: method, URL: srv.URL, Effect: effect, Allowlist: []string{"*"}}
	}
	set := newSet(t, loopback(t, srv.URL), opts, def("reads", "GET", 0), def("idempotent", "PUT", lathe.Idempotent), def("writes", "POST", 0), def("get_writes", "GET", lathe.Writes))
	for _, tt := range []struct {
		tool, after string
		replies     []int
		requests    int
		code        lathe.Code
		wait        time.Duration // before the second request, as Retry-After says; 0: not checked
	}{
		{"reads", "", []int{503, 200}, 2, "", 0},
		{"reads", "", []int{502, 504, 200}, 3, "", 0},
		{"reads", "", []int{429, 503, 503, 200}, 3, lathe.CodeUnavailable, 0},
		{"reads", "", []int{500, 200}, 1, lathe.CodeExecutionFailed, 0},
		{"reads", "", []int{404, 200}, 1, lathe.CodeExecutionFailed, 0},
		{"reads", "2", []int{429, 200}, 2, "", 2 * time.Second},
		{"reads", "10", []int{429, 200}, 2, "", 10 * time.Second},
		{"reads", "11", []int{429, 200}, 1, lathe.CodeRateLimited, 0},
		{"reads", "soon", []int{429, 200}, 1, lathe.CodeRateLimited, 0},
		{"reads", "Fri, 01 Jan 2100 00:00:00 GMT", []int{503, 200}, 1, lathe.CodeUnavailable, 0},
		{"idempotent", "", []int{503, 503, 200}, 3, "", 0},
		{"writes", "", []int{503, 200}, 1, lathe.CodeUnavailable, 0},
		{"writes", "1", []int{429, 200}, 1, lathe.CodeRateLimited, 0},
		{"get_writes", "", []int{503, 200}, 1, lathe.CodeUnavailable, 0},
	} {
		mu.Lock()
		replies, keys, after, waits = slices.Clone(tt.replies), nil, tt.after, nil
		mu.Unlock()
		r := call(t, set, tt.tool, `{}`)
		if r.Code != tt.code || len(keys) != tt.requests {
			t.Errorf("%s after %v, Retry-After %q: got %q after %d requests, want %q after %d", tt.tool, tt.replies, tt.after, r.Code, len(keys), tt.code, tt.requests)
		}
		if tt.wait != 0 && (len(waits) == 0 || waits[0] != tt.wait) {
			t.Errorf("%s, Retry-After %q: waited %v, want %v", tt.tool, tt.after, waits, tt.wait)
		}
		slices.Sort(keys)
		if unique := slices.Compact(slices.Clone(keys)); len(unique) != 1 || (unique[0] != "") != (tt.tool == "idempotent") {
			t.Errorf("%s: keys %q", tt.tool, keys)
		}
	}
	dead := httptest.NewServer(nil)
	dead.Close()
	waits = nil
	lost := newSet(t, loopback(t, dead.URL), opts, &httptool.Definition{Name: "reads", URL: dead.URL, Allowlist: []string{"*"}},
		&httptool.Definition{Name: "writes", Method: "POST", URL: dead.URL, Allowlist: []string{"*"}})
	if r := call(t, lost, "reads", `{}`); r.Code != lathe.CodeUnavailable || len(waits) != 2 {
		t.Errorf("no server listens: got %s after %d waits", r.Content, len(waits))
	}
	if r := call(t, lost, "writes", `{}`); r.Code != lathe.CodeUnavailable || len(waits) != 2 {
		t.Errorf("no server listens: a tool that writes waited, %s", r.Content)
	}
}

// A call is not retried if its deadline is before the end of the wait: it returns the server's answer.
func TestRetriesEndWithTheDeadline(t *testing.T) {
	t.Parallel()
	asked := 0
	srv := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Header().Set("Retry-After", "100")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	set := newSet(t, loopback(t, srv.URL), nil, &httptool.Definition{Name: "reads", URL: srv.URL, Allowlist: []string{"*"}, Timeout: time.Minute})
	if r := call(t, set, "reads", `{}`); r.Code != lathe.CodeUnavailable || asked != 1 {
		t.Errorf("got %s after %d requests", r.Content, asked)
	}
}

func TestCancelledCallsEnd(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	srv := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	set := newSet(t, loopback(t, srv.URL), nil, &httptool.Definition{Name: "hangs", URL: srv.URL, Allowlist: []string{"*"}})
	if r := callIn(ctx, t, set, "hangs", `{}`); r.Code != lathe.CodeCancelled {
		t.Errorf("got %s", r.Content)
	}
}

func TestWrongDefinitions(t *testing.T) {
	t.Parallel()
	client := loopback(t, "http://127.0.0.1:80")
	good := func() *httptool.Definition {
		return &httptool.Definition{Name: "t", URL: "https://example.com/a/{id}", Allowlist: []string{"*"}, Parameters: []httptool.Parameter{{Name: "id", In: httptool.InPath}}}
	}
	if _, err := httptool.New(good(), client, nil); err != nil {
		t.Fatal(err)
	}
	param := func(p httptool.Parameter) func(*httptool.Definition) {
		return func(d *httptool.Definition) { d.Parameters = append(d.Parameters, p) }
	}
	for name, tt := range map[string]struct {
		change      func(*httptool.Definition)
		field, want string
	}{
		"no allowlist":    {func(d *httptool.Definition) { d.Allowlist = nil }, "allowlist", "no allowlist"},
		"method":          {func(d *httptool.Definition) { d.Method = "TRACE" }, "method", "TRACE"},
		"scheme":          {func(d *httptool.Definition) { d.URL = "ftp://example.com/{id}" }, "url", "https://"},
		"user":            {func(d *httptool.Definition) { d.URL = "https://u:p@example.com/{id}" }, "url", "user"},
		"host parameter":  {func(d *httptool.Definition) { d.URL = "https://{id}.example.com/" }, "url", "stand in the path"},
		"query":           {func(d *httptool.Definition) { d.URL = "https://example.com/{id}?a=1" }, "url", "query"},
		"open brace":      {func(d *httptool.Definition) { d.URL = "https://example.com/{id" }, "url", "{"},
		"dot segment":     {func(d *httptool.Definition) { d.URL = "https://example.com/a/%2e%2e/{id}" }, "url", "path"},
		"unfilled place":  {func(d *httptool.Definition) { d.URL += "/{other}" }, "parameters", "{other}"},
		"no place":        {param(httptool.Parameter{Name: "x", In: httptool.InPath}), "parameters", "{x}"},
		"place":           {param(httptool.Parameter{Name: "x", In: "fragment"}), "parameters.x", "no place"},
		"style":           {param(httptool.Parameter{Name: "x", In: httptool.InQuery, Style: "matrix"}), "parameters.x", "no style"},
		"twice":           {param(httptool.Parameter{Name: "id", In: httptool.InQuery}), "parameters", `two parameters have the name "id": give one of them another Name`},
		"Authorization":   {param(httptool.Parameter{Name: "authorization", In: httptool.InHeader}), "parameters.authorization", "Authorization"},
		"Cookie":          {param(httptool.Parameter{Name: "x", As: "cookie", In: httptool.InHeader}), "parameters.x", "Cookie"},
		"Host":            {param(httptool.Parameter{Name: "Host", In: httptool.InHeader}), "parameters.Host", "Host"},
		"Idempotency-Key": {param(httptool.Parameter{Name: "Idempotency-Key", In: httptool.InHeader}), "parameters.Idempotency-Key", "Idempotency-Key"},
		"header name":     {param(httptool.Parameter{Name: "x", As: "a: b\r\nc", In: httptool.InHeader}), "parameters.x", "not a name"},
		"body of a GET":   {param(httptool.Parameter{Name: "x", In: httptool.InBody}), "body", "no body"},
		"schema":          {param(httptool.Parameter{Name: "x", In: httptool.InQuery, Schema: json.RawMessage(`{"a":1,"a":2}`)}), "parameters.x", "schema"},
		"body type":       {func(d *httptool.Definition) { d.Method, d.Body = "POST", "application/xml" }, "body", "application/xml"},
		"credential header": {func(d *httptool.Definition) {
			d.Credentials.Headers = map[string]secret.Secret{"X": secret.New("a\r\nb")}
		}, "credentials", "cannot be sent"},
		"credential empty":    {func(d *httptool.Definition) { d.Credentials.Query = map[string]secret.Secret{"k": {}} }, "credentials", "empty"},
		"credential's header": {both(param(httptool.Parameter{Name: "x-key", In: httptool.InHeader}), func(d *httptool.Definition) { d.Credentials.Headers = map[string]secret.Secret{"X-Key": key("k")} }), "parameters", "taken"},
		"credential's query":  {both(param(httptool.Parameter{Name: "k", In: httptool.InQuery, Schema: json.RawMessage(`{"type":"object"}`)}), func(d *httptool.Definition) { d.Credentials.Query = map[string]secret.Secret{"k": key("k")} }), "parameters", "taken"},
	} {
		d := good()
		tt.change(d)
		_, err := httptool.New(d, client, nil)
		var field *httptool.FieldError
		if lathe.CodeOf(err) != lathe.CodeInvalidConfig || !errors.As(err, &field) || field.Field != tt.field || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want field %s and %q", name, err, tt.field, tt.want)
		}
	}
}

func both(a, b func(*httptool.Definition)) func(*httptool.Definition) {
	return func(d *httptool.Definition) { a(d); b(d) }
}

// Two tools of two users at one server: neither's credential goes along with the other's call, and
// none of them is what a model says.
func TestT7_CredentialsStayWithTheirTool(t *testing.T) {
	t.Parallel()
	srv := record(t)
	def := func(user string) *httptool.Definition {
		return &httptool.Definition{Name: user, URL: srv.URL, Allowlist: []string{"*"}, Parameters: []httptool.Parameter{{Name: "filter", In: httptool.InQuery, Schema: json.RawMessage(`{"type":"object"}`)}},
			Credentials: httptool.Credentials{Headers: map[string]secret.Secret{"Authorization": httptool.Bearer(key(user))}, Query: map[string]secret.Secret{"k": key(user)}, Cookies: map[string]secret.Secret{"c": key(user)}}}
	}
	set := newSet(t, loopback(t, srv.URL), nil, def("anna"), def("bert"))
	for _, user := range []string{"anna", "bert", "anna"} {
		if r := call(t, set, user, `{"filter":{"q":"x"}}`); r.IsError {
			t.Fatal(r.Content)
		}
		got := strings.Join(srv.take(), "")
		if n := strings.Count(got, "canary-"+user); n != 3 || strings.Count(got, "canary-") != n {
			t.Errorf("%s's call is\n%s", user, got)
		}
	}
	for _, name := range []string{"k", "K", "k[]", "K[0]"} {
		if r := call(t, set, "anna", `{"filter":{"`+name+`":"mine"}}`); r.Code != lathe.CodeInvalidArguments || len(srv.take()) != 0 {
			t.Errorf("a model gives a credential's name: got %s", r.Content)
		}
	}
	if r := call(t, set, "anna", `{"filter":{},"Authorization":"Bearer mine"}`); r.Code != lathe.CodeInvalidArguments || len(srv.take()) != 0 {
		t.Errorf("a model gives a header: got %s", r.Content)
	}
}

// A tool that reads stays one: no argument becomes the method, the path or the sender of a request.
func TestT13_HeadersThatChangeTheRequestAreNotTheModels(t *testing.T) {
	t.Parallel()
	client := loopback(t, "http://127.0.0.1:1")
	for _, name := range []string{"X-HTTP-Method-Override", "x-http-method", "X-Method-Override", "X-Original-URL", "X-Rewrite-URL", "X-Forwarded-Proto", "Authorization", "cookie", "HOST", "Transfer-Encoding"} {
		d := &httptool.Definition{Name: "t", URL: "http://127.0.0.1:1/a", Allowlist: []string{"*"}, Parameters: []httptool.Parameter{{Name: "h", As: name, In: httptool.InHeader}}}
		if _, err := httptool.New(d, client, nil); err == nil || !strings.Contains(err.Error(), "a model does not fill the header") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// The model never gets a credential that a server echoes, in whatever encoding.
func TestT21_CredentialsInEscapesAreTakenOut(t *testing.T) {
	t.Parallel()
	answer := ""
	srv := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(answer))
	})
	set := newSet(t, loopback(t, srv.URL), nil, &httptool.Definition{Name: "echo", URL: srv.URL, Allowlist: []string{"*"}, Credentials: httptool.Credentials{
		Headers: map[string]secret.Secret{"Authorization": httptool.Basic(secret.New("user:canary/pa&ss"))}, Query: map[string]secret.Secret{"k": secret.New("canary&k<y>/1")}}})
	for _, answer = range []string{
		`{"a":"canary\/pa\u0026ss"}`, `{"a":"user:canary/pa&ss"}`, `{"a":"x\ncanary\u0026k\u003cy\u003e/1 y","b":"plain"}`, `{"canary\u0026k<y>/1":1}`,
		`{"a":"?k=canary%26k%3Cy%3E%2F1"}`, `{"a":"\u0063anary/pa&ss"}`, `["\\", "canary\/pa&ss", "\""]`,
	} {
		r := call(t, set, "echo", `{}`)
		if r.IsError || strings.Contains(r.Content, "canary") || !strings.Contains(r.Content, "redacted") {
			t.Errorf("%s: got %s", answer, r.Content)
		}
	}
	answer = `{"a":"\u0026 stays","b":"as \/ it is"}`
	if r := call(t, set, "echo", `{}`); r.Content != answer {
		t.Errorf("got %s, want %s", r.Content, answer)
	}
}

// Credentials that a server echoes in its answer are removed before the model gets the answer.
func TestT21_CredentialsAreTakenOutOfAnswers(t *testing.T) {
	t.Parallel()
	status := 200
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		b, err := json.Marshal(map[string]any{"headers": r.Header, "url": r.URL.String()})
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(b)
	})
	set := newSet(t, loopback(t, srv.URL), nil, &httptool.Definition{Name: "echo", URL: srv.URL, Allowlist: []string{"*"}, Credentials: httptool.Credentials{
		Headers: map[string]secret.Secret{"Authorization": httptool.Bearer(key("header"))}, Query: map[string]secret.Secret{"k": key("query")}, Cookies: map[string]secret.Secret{"c": key("cookie")}}})
	for _, status = range []int{200, 400} {
		if r := call(t, set, "echo", `{}`); strings.Contains(r.Content, "canary") || !strings.Contains(r.Content, "Authorization") {
			t.Errorf("status %d: got %s", status, r.Content)
		}
	}
}

// The errors for models and those for operators contain no part of the request.
func TestT21_ErrorsShowNothingOfTheRequest(t *testing.T) {
	t.Parallel()
	srv := serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	d := &httptool.Definition{Name: "t", URL: srv.URL + "/canary/{id}", Allowlist: []string{"*"}, Parameters: []httptool.Parameter{{Name: "id", In: httptool.InPath}},
		Credentials: httptool.Credentials{Query: map[string]secret.Secret{"k": key("query")}}}
	set := newSet(t, loopback(t, srv.URL), nil, d)
	var errs []error
	r, err := tool.NewRunner(set, &tool.Options{Policy: policy.Tools{Else: policy.Effects{ReadOnly: lathe.Allow}}, OnError: func(_ context.Context, _ *lathe.CallInfo, err error) { errs = append(errs, err) }})
	if err != nil {
		t.Fatal(err)
	}
	out := r.Begin(&lathe.RunInfo{RunID: "run_1"}, nil).Execute(t.Context(), 1, []tool.Call{{ToolCall: lathe.ToolCall{ID: "call_1", Name: "t", Arguments: `{"id":"canary"}`}}}, func(event.Data) {})
	got := fmt.Sprintf("%v %+v", errs, out.Messages)
	if len(errs) != 1 || strings.Contains(got, "canary") || !strings.Contains(got, "broken") {
		t.Errorf("got %s", got)
	}
}

// Whatever a model writes, the request that the server gets is built as it was declared: the same
// path but for one segment, the same parts of the query, the same headers, one body.
func FuzzT13_ValuesStayInTheirPlace(f *testing.F) {
	for _, s := range []string{"", ".", "..", "../../x", "a/b", "a?b=c&d#e", "x\r\nX-Evil: 1\r\n\r\nGET / HTTP/1.1", "%2e%2e", "%00", "é\u2028", "a;b=c", `"quoted"`, "k=v&k2=v2", "\\..\\", "..;", " x ", "--lathe-", "a/../b", "..%2fx", "...", "a/..;b"} {
		f.Add(s)
	}
	type got struct {
		uri, method string
		header      http.Header
		form        url.Values
		body        string
	}
	ch := make(chan got, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		g := got{uri: r.RequestURI, method: r.Method, header: r.Header.Clone()}
		b, _ := io.ReadAll(r.Body)
		g.body = string(b)
		g.form, _ = url.ParseQuery(g.body)
		ch <- g
	}))
	f.Cleanup(srv.Close)
	u, err := url.Parse(srv.URL)
	if err != nil {
		f.Fatal(err)
	}
	var port int
	if _, err := fmt.Sscanf(u.Port(), "%d", &port); err != nil {
		f.Fatal(err)
	}
	client, err := egress.New(&egress.Rules{Hosts: []string{"127.0.0.1"}, Schemes: []string{"http"}, Ports: []int{port}, Private: []string{"127.0.0.1"}}, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(client.Close)
	one, err := httptool.New(&httptool.Definition{Name: "t", Method: "POST", URL: srv.URL + "/a/{p}/z", Body: "application/x-www-form-urlencoded", Allowlist: []string{"*"}, Parameters: []httptool.Parameter{
		{Name: "p", In: httptool.InPath}, {Name: "q", In: httptool.InQuery}, {Name: "r", In: httptool.InQuery, AllowReserved: true},
		{Name: "h", As: "X-H", In: httptool.InHeader}, {Name: "c", In: httptool.InCookie}, {Name: "b", In: httptool.InBody},
	}}, client, nil)
	if err != nil {
		f.Fatal(err)
	}
	set, err := tool.NewSet(one)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, s string) {
		args, err := json.Marshal(map[string]string{"p": s, "q": s, "r": s, "h": s, "c": s, "b": s})
		if err != nil {
			t.Fatal(err)
		}
		s = string([]rune(s)) // as encoding/json writes it
		r := call(t, set, "t", string(args))
		if s == "" || slices.ContainsFunc(strings.FieldsFunc(s, func(r rune) bool { return r == '/' || r == '\\' }), func(seg string) bool {
			dots, _, _ := strings.Cut(seg, ";")
			return dots == "." || dots == ".."
		}) {
			if r.IsError {
				if r.Code != lathe.CodeInvalidArguments {
					t.Fatalf("%q: got %s", s, r.Content)
				}
				return
			}
		}
		if r.IsError {
			t.Fatalf("%q: got %s", s, r.Content)
		}
		g := <-ch
		path, query, _ := strings.Cut(g.uri, "?")
		segments := strings.Split(path, "/")
		if len(segments) != 4 || segments[1] != "a" || segments[3] != "z" {
			t.Errorf("%q: path %s", s, path)
		} else if p, err := url.PathUnescape(segments[2]); err != nil || p != s {
			t.Errorf("%q: segment %s", s, segments[2])
		}
		q, err := url.ParseQuery(query)
		if err != nil || len(q) != 2 || len(q["q"]) != 1 || q.Get("q") != s || len(q["r"]) != 1 || q.Get("r") != s {
			t.Errorf("%q: query %s", s, query)
		}
		if g.method != http.MethodPost || len(g.form) != 1 || g.form.Get("b") != s {
			t.Errorf("%q: %s with body %q", s, g.method, g.body)
		}
		want := []string{"Accept", "Accept-Encoding", "Content-Length", "Content-Type", "Cookie", "User-Agent", "X-H"}
		var names []string
		for name := range g.header {
			names = append(names, name)
		}
		slices.Sort(names)
		if !slices.Equal(names, want) || len(g.header["X-H"]) != 1 || strings.ContainsAny(g.header.Get("X-H"), "\r\n\x00") {
			t.Errorf("%q: headers %v", s, g.header)
		}
		if c := g.header.Get("Cookie"); strings.ContainsAny(c, ";, \"\\\r\n") || !strings.HasPrefix(c, "c=") {
			t.Errorf("%q: cookie %q", s, c)
		}
	})
}
