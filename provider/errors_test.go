package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire/openai"
	"github.com/lathe-run/lathe/secret"
)

func newChat(t testing.TB, o *Options) *Chat {
	t.Helper()
	c, err := OpenAI("m", o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestStatusBecomesKind(t *testing.T) {
	t.Parallel()
	c := newChat(t, nil)
	for _, k := range []struct {
		status    int
		body      string
		kind      lathe.UpstreamKind
		code      string
		retryable bool
	}{
		{400, `{"error":{"message":"no","type":"invalid_request_error","param":null,"code":null}}`, lathe.Upstream4xx, "invalid_request_error", false},
		{401, ``, lathe.Upstream4xx, "", false},
		{403, `nope`, lathe.Upstream4xx, "", false},
		{404, `{"error":{"code":"model_not_found"}}`, lathe.Upstream4xx, "model_not_found", false},
		{408, ``, lathe.UpstreamTimeout, "", true},
		{429, `{"error":{"code":"rate_limit_exceeded"}}`, lathe.UpstreamRateLimited, "rate_limit_exceeded", true},
		{429, `{"error":{"code":"insufficient_quota"}}`, lathe.UpstreamRateLimited, "insufficient_quota", false},
		{500, `<html>`, lathe.Upstream5xx, "", true},
		{400, `{"error":{"code":400,"message":"request (16045 tokens) exceeds the available context size (1536 tokens), try increasing it","type":"exceed_context_size_error","n_ctx":1536}}`, lathe.Upstream4xx, lathe.CodeContextLength, false},
		{400, `{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens","type":"BadRequestError","param":null,"code":400}`, lathe.Upstream4xx, lathe.CodeContextLength, false},
		{500, `{"error":{"message":"input length exceeds the context length","type":"api_error","param":null,"code":null}}`, lathe.Upstream4xx, lathe.CodeContextLength, false},
		{400, `{"error":{"message":"The input (9000 tokens) is longer than the model's context length (8192 tokens).","type":"BadRequestError","code":400}}`, lathe.Upstream4xx, lathe.CodeContextLength, false},
		{429, `{"error":{"message":"maximum context length of the plan","code":"rate_limit_exceeded"}}`, lathe.UpstreamRateLimited, "rate_limit_exceeded", true},
		{500, `{"error":{"code":500,"message":"boom","type":"server_error"}}`, lathe.Upstream5xx, "server_error", true},
		{400, `{"error":{"code":400,"message":"boom"}}`, lathe.Upstream4xx, "400", false},
		{503, `{"error":{"message":"Loading model","type":"unavailable_error","code":503}}`, lathe.UpstreamLoading, "unavailable_error", true},
		{503, `{"error":"Model acme/x is currently loading","estimated_time":20.0}`, lathe.UpstreamLoading, "", true},
		{500, `{"error":{"message":"error loading model: out of memory","type":"api_error"}}`, lathe.Upstream5xx, "api_error", true},
		{500, `{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}`, lathe.Upstream4xx, "server_error", false},
		{500, `{"error":{"code":500,"message":"Failed to parse tool call arguments as JSON: [json.exception.parse_error.101]","type":"server_error"}}`, lathe.Upstream4xx, "server_error", false},
		{501, `{"error":{"code":501,"message":"This server does not support embeddings","type":"not_supported_error"}}`, lathe.Upstream4xx, "not_supported_error", false},
		{503, `{"error":{"code":"weird code \u0001ü"}}`, lathe.Upstream5xx, "weird_code____", true},
		{529, ``, lathe.Upstream5xx, "", true},
		{600, ``, lathe.Upstream5xx, "", true},
	} {
		got := c.fromStatus(&http.Response{StatusCode: k.status, Header: http.Header{}}, openai.ParseError(k.status, []byte(k.body)), []byte(k.body))
		if got.Kind != k.kind || got.Status != k.status || got.ProviderCode != k.code || got.Retryable != k.retryable || got.Connect {
			t.Errorf("%d %s: got %+v", k.status, k.body, got)
		}
	}
}

func TestInBandErrorBecomesKind(t *testing.T) {
	t.Parallel()
	c := newChat(t, nil)
	for _, k := range []struct {
		in        openai.APIError
		kind      lathe.UpstreamKind
		status    int
		retryable bool
	}{
		{openai.APIError{Status: 429}, lathe.UpstreamRateLimited, 429, true},
		{openai.APIError{Status: 502, Message: "x"}, lathe.Upstream5xx, 502, true},
		{openai.APIError{Status: 400}, lathe.Upstream4xx, 400, false},
		{openai.APIError{Status: 408}, lathe.UpstreamTimeout, 408, true},
		{openai.APIError{Code: "rate_limit_exceeded"}, lathe.UpstreamRateLimited, 0, true},
		{openai.APIError{Type: "invalid_request_error"}, lathe.Upstream4xx, 0, false},
		{openai.APIError{Type: "server_error"}, lathe.Upstream5xx, 0, true},
		{openai.APIError{Code: "timeout"}, lathe.UpstreamTimeout, 0, true},
		{openai.APIError{Message: "boom"}, lathe.Upstream5xx, 0, true},
		{openai.APIError{Type: "exceed_context_size_error"}, lathe.Upstream4xx, 0, false},
		{openai.APIError{Status: 200, Type: "overloaded_error"}, lathe.Upstream5xx, 0, true},
	} {
		if got := c.fromInBand(&k.in, nil); got.Kind != k.kind || got.Status != k.status || got.Retryable != k.retryable || !got.InBand {
			t.Errorf("%+v: got %+v", k.in, got)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		now := time.Now().UTC()
		for _, c := range []struct {
			name, value string
			want        time.Duration
		}{
			{"Retry-After", "", 0},
			{"Retry-After", "7", 7 * time.Second},
			{"Retry-After", " 1.5 ", 1500 * time.Millisecond},
			{"Retry-After", "0", 0},
			{"Retry-After", "-3", 0},
			{"Retry-After", "soon", 0},
			{"Retry-After", "NaN", 0},
			{"Retry-After", "1e300", maxRetryAfter},
			{"Retry-After", "999999999999", maxRetryAfter},
			{"Retry-After", now.Add(90 * time.Second).Format(http.TimeFormat), 90 * time.Second},
			{"Retry-After", now.Add(-90 * time.Second).Format(http.TimeFormat), 0},
			{"Retry-After", now.Add(9000 * time.Hour).Format(http.TimeFormat), maxRetryAfter},
			{"Retry-After-Ms", "250", 250 * time.Millisecond},
		} {
			if got := resetOf(&lathe.UpstreamError{}, http.Header{c.name: {c.value}}, nil, now); got != c.want {
				t.Errorf("%s: %q: got %v, want %v", c.name, c.value, got, c.want)
			}
		}
	})
}

// A server that takes no more requests says in one of several places when it takes them again.
func TestResetTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	headers := func(pairs ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Set(pairs[i], pairs[i+1])
		}
		return h
	}
	for name, c := range map[string]struct {
		header  http.Header
		body    string
		message string
		known   time.Duration // by the codec
		want    time.Duration
	}{
		"seconds in the error":            {body: `{"error":{"type":"usage_limit_reached","resets_in_seconds":7200}}`, want: 2 * time.Hour},
		"seconds as text, at the top":     {body: `{"resets_in_seconds":"90"}`, want: 90 * time.Second},
		"in an event":                     {body: `{"type":"response.failed","response":{"error":{"resets_in_seconds":90}}}`, want: 90 * time.Second},
		"a time in seconds":               {body: fmt.Sprintf(`{"error":{"resets_at":%d}}`, now.Add(time.Hour).Unix()), want: time.Hour},
		"a time in milliseconds":          {body: fmt.Sprintf(`{"error":{"resets_at":%d}}`, now.Add(time.Hour).UnixMilli()), want: time.Hour},
		"a time with a fraction":          {body: fmt.Sprintf(`{"error":{"resets_at":%d.5}}`, now.Add(time.Hour).Unix()), want: time.Hour},
		"a time in place of seconds":      {body: fmt.Sprintf(`{"error":{"resets_in_seconds":%d}}`, now.Add(time.Hour).Unix()), want: time.Hour},
		"a time that is no time":          {body: `{"error":{"resets_at":3600}}`},
		"a header's time in seconds":      {header: headers("Retry-After", strconv.FormatInt(now.Add(time.Minute).Unix(), 10)), want: time.Minute},
		"a header's time in milliseconds": {header: headers("Retry-After", strconv.FormatInt(now.Add(time.Minute).UnixMilli(), 10)), want: time.Minute},
		"a limit's time in seconds":       {header: headers("x-ratelimit-reset-requests", strconv.FormatInt(now.Add(time.Minute).Unix(), 10), "x-ratelimit-remaining-requests", "0"), want: time.Minute},
		"a limit's time in milliseconds":  {header: headers("x-ratelimit-reset-requests", strconv.FormatInt(now.Add(time.Minute).UnixMilli(), 10), "x-ratelimit-remaining-requests", "0"), want: time.Minute},
		"a limit's date":                  {header: headers("x-ratelimit-reset-tokens", "2026-11-28T12:10:00Z"), want: 10 * time.Minute},
		"a limit's time in the past":      {header: headers("x-ratelimit-reset-requests", strconv.FormatInt(now.Add(-time.Minute).Unix(), 10))},
		"a limit's time far away":         {header: headers("x-ratelimit-reset-requests", strconv.FormatInt(now.Add(9000*time.Hour).UnixMilli(), 10)), want: maxRetryAfter},
		"a limit without a name":          {header: headers("x-ratelimit-reset", strconv.FormatInt(now.Add(time.Minute).UnixMilli(), 10), "x-ratelimit-remaining", "0"), want: time.Minute},
		"a date":                          {body: `{"error":{"resets_at":"2026-11-28T12:10:00Z"}}`, want: 10 * time.Minute},
		"a time in the past":              {body: fmt.Sprintf(`{"error":{"resets_at":%d}}`, now.Add(-time.Hour).Unix())},
		"no number":                       {body: `{"error":{"resets_in_seconds":null,"resets_at":[]}}`},
		"no JSON":                         {body: `resets_in_seconds: 9`},
		"far away":                        {body: `{"error":{"resets_in_seconds":1e18}}`, want: maxRetryAfter},
		"a number too large to read":      {body: `{"error":{"resets_at":1e400}}`, want: maxRetryAfter},
		"a time too large to be one":      {body: `{"error":{"resets_at":1e18}}`, want: maxRetryAfter},
		"words too large to read":         {message: "try again in 99999999999999999999h", want: maxRetryAfter},
		"minutes and seconds":             {message: "Rate limit reached. Please try again in 20m5s.", want: 20*time.Minute + 5*time.Second},
		"milliseconds":                    {message: "Please Try again in 350ms", want: 350 * time.Millisecond},
		"a fraction":                      {message: "try again in 1.5s.", want: 1500 * time.Millisecond},
		"in words":                        {message: "try again in 1 hour 30 minutes", want: 90 * time.Minute},
		"words without a time":            {message: "Please try again in a moment."},
		"words without a unit":            {message: "try again in 30"},
		"a strange number":                {message: "try again in 1.2.3s, or 99999999999999s"},
		"the header first":                {header: headers("Retry-After", "3"), body: `{"resets_in_seconds":90}`, message: "try again in 5s", want: 3 * time.Second},
		"the codec's before the body's":   {body: `{"resets_in_seconds":90}`, known: 4 * time.Second, want: 4 * time.Second},
		"the limit that is used up":       {header: headers("x-ratelimit-reset-requests", "2m30s", "x-ratelimit-remaining-requests", "0", "x-ratelimit-reset-tokens", "6ms", "x-ratelimit-remaining-tokens", "900"), want: 150 * time.Second},
		"the later of two":                {header: headers("x-ratelimit-reset-requests", "2m30s", "x-ratelimit-remaining-requests", "0", "x-ratelimit-reset-tokens", "4m", "x-ratelimit-remaining-tokens", "0"), want: 4 * time.Minute},
		"the earlier, if none is used up": {header: headers("x-ratelimit-reset-requests", "2m30s", "x-ratelimit-reset-tokens", "12"), want: 12 * time.Second},
		"no duration":                     {header: headers("x-ratelimit-reset-requests", "soon")},
	} {
		e := &lathe.UpstreamError{Kind: lathe.UpstreamRateLimited, Message: c.message, RetryAfter: c.known}
		if got := resetOf(e, c.header, []byte(c.body), now); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
		if c.header.Get("Retry-After") != "" || c.known > 0 {
			continue
		}
		if e.Kind = lathe.Upstream5xx; resetOf(e, c.header, []byte(c.body), now) != 0 {
			t.Errorf("%s: another error waits for the limit", name)
		}
	}
	for _, f := range resetForms {
		if f.server == "" {
			t.Errorf("the place %q has no server", f.name)
		}
	}
}

func TestContextOverflowInTheWordsOfEachServer(t *testing.T) {
	t.Parallel()
	c := newChat(t, nil)
	for server, body := range map[string]string{
		"vLLM":    `{"error":{"message":"You passed 9001 input tokens and requested 100 output tokens. However, the model's context length is only 8192 tokens.","type":"BadRequestError","code":400}}`,
		"xAI":     `{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 8192 but the request contains 9001 tokens."}`,
		"Bedrock": `{"message":"Input is too long for requested model."}`,
		"Kimi":    `{"error":{"message":"Invalid request: Your request exceeded model token limit: 8192 (requested: 9001)","type":"invalid_request_error"}}`,
		"Z.ai":    `{"error":{"code":"1261","message":"Prompt exceeds max length"}}`,
		"Ollama":  `{"error":{"message":"prompt too long; exceeded max context length by 3 tokens","type":"api_error"}}`,
	} {
		for _, status := range []int{400, 413, 500} {
			got := c.fromStatus(&http.Response{StatusCode: status, Header: http.Header{}}, openai.ParseError(status, []byte(body)), []byte(body))
			if got.ProviderCode != lathe.CodeContextLength || got.Kind != lathe.Upstream4xx || got.Retryable {
				t.Errorf("%s, %d: got %+v", server, status, got)
			}
		}
	}
	for _, p := range contextPhrases {
		if p.text != strings.ToLower(p.text) || p.server == "" {
			t.Errorf("%+v is in capitals, or has no server", p)
		}
	}
	limited := `{"error":{"message":"The input is too long for requested model limits per minute"}}`
	if got := c.fromStatus(&http.Response{StatusCode: 429, Header: http.Header{}}, openai.ParseError(429, []byte(limited)), nil); got.ProviderCode == lathe.CodeContextLength {
		t.Error("a limit of requests is taken for a conversation that is too long")
	}
}

func TestMessageIsBoundedAndScrubbed(t *testing.T) {
	t.Parallel()
	c := newChat(t, &Options{Key: secret.New("correct horse battery"), Headers: map[string]secret.Secret{"X-Api-Key": secret.New("staple12")}})
	long := c.clean(strings.Repeat("é", 400) + "correct horse battery")
	if len(long) > maxMessage || !utf8.ValidString(long) {
		t.Errorf("got %d bytes, valid %v", len(long), utf8.ValidString(long))
	}
	for in, want := range map[string]string{
		"":                           "",
		"key correct horse battery!": "key [redacted]!",
		"staple12 and Bearer " + strings.Repeat("z", 20): "[redacted] and Bearer [redacted]",
		"a\x00b\nc\xff": "a b c",
		// The cut does not free half a key.
		strings.Repeat("a", maxMessage-8) + " correct horse battery": strings.Repeat("a", maxMessage-8) + " [redact",
	} {
		if got := c.clean(in); got != want {
			t.Errorf("clean(%q): got %q, want %q", in, got, want)
		}
	}
	if got := c.cleanCode("correct horse battery"); got != "_redacted_" {
		t.Errorf("got %q", got)
	}
	if got := c.cleanCode(strings.Repeat("x", 100)); len(got) != maxProviderCode {
		t.Errorf("got %d bytes", len(got))
	}
}

func TestRequestID(t *testing.T) {
	t.Parallel()
	c := newChat(t, &Options{Key: secret.New("correct-horse")})
	for _, k := range []struct {
		h    http.Header
		want string
	}{
		{http.Header{}, ""},
		{http.Header{"X-Request-Id": {"req_1"}}, "req_1"},
		{http.Header{"Request-Id": {"b"}, "Cf-Ray": {"c"}}, "b"},
		{http.Header{"X-Litellm-Call-Id": {"l"}}, "l"},
		{http.Header{"X-Request-Id": {""}, "Cf-Ray": {"c"}}, "c"},
		{http.Header{"X-Request-Id": {"a b"}}, ""},
		{http.Header{"X-Request-Id": {"a\x7f"}}, ""},
		{http.Header{"X-Request-Id": {"é"}}, ""},
		{http.Header{"X-Request-Id": {"for-correct-horse"}}, ""},
		{http.Header{"X-Request-Id": {strings.Repeat("r", 300)}}, strings.Repeat("r", maxRequestID)},
	} {
		if got := c.requestID(k.h); got != k.want {
			t.Errorf("%v: got %q, want %q", k.h, got, k.want)
		}
	}
}

func TestErrorTextHoldsNoWordsOfTheServer(t *testing.T) {
	t.Parallel()
	c := newChat(t, nil)
	err := error(c.failure(&lathe.UpstreamError{Kind: lathe.Upstream4xx, Status: 400, ProviderCode: "bad", Message: "your prompt was: hello"}))
	if got, want := err.Error(), "provider: call openai: upstream_error: upstream_4xx (HTTP 400) code bad"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	err = c.failure(c.protocol(200, "page", nil))
	if lathe.CodeOf(err) != lathe.CodeUpstreamProtocol {
		t.Errorf("got %v", err)
	}
}

type netTimeout struct{}

func (netTimeout) Error() string   { return "i/o timeout" }
func (netTimeout) Timeout() bool   { return true }
func (netTimeout) Temporary() bool { return false }

func TestTransportErrors(t *testing.T) {
	t.Parallel()
	c := newChat(t, nil)
	reset := errors.New("connection reset by peer")
	for _, k := range []struct {
		name  string
		err   error
		cause error
		until progress
		want  lathe.UpstreamError
	}{
		{"refused", reset, nil, notSent, lathe.UpstreamError{Kind: lathe.UpstreamAborted, Connect: true, Retryable: true}},
		{"reset before the response", reset, nil, sent, lathe.UpstreamError{Kind: lathe.UpstreamAborted, Retryable: true}},
		{"reset within the response", reset, nil, responded, lathe.UpstreamError{Kind: lathe.UpstreamAborted}},
		{"dial timeout", netTimeout{}, nil, notSent, lathe.UpstreamError{Kind: lathe.UpstreamTimeout, Connect: true, Retryable: true}},
		{"transport's own timeout", netTimeout{}, nil, sent, lathe.UpstreamError{Kind: lathe.UpstreamTimeout}},
		{"open timeout", context.Canceled, errOpenTimeout, notSent, lathe.UpstreamError{Kind: lathe.UpstreamTimeout, Connect: true, Retryable: true}},
		{"client timeout", context.Canceled, errClientTimeout, sent, lathe.UpstreamError{Kind: lathe.UpstreamTimeout}},
		{"read timeout", context.Canceled, errReadTimeout, responded, lathe.UpstreamError{Kind: lathe.UpstreamTimeout}},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		if k.cause != nil {
			cancel(k.cause)
		}
		got := c.fromTransport(ctx, k.err, k.until)
		if got.Kind != k.want.Kind || got.Connect != k.want.Connect || got.Retryable != k.want.Retryable || got.Err == nil || got.Message == "" {
			t.Errorf("%s: got %+v, want %+v", k.name, got, k.want)
		}
		cancel(nil)
	}
}

// The cause of a failed attempt names no address, whatever wraps the error.
func TestCausesHaveNoAddress(t *testing.T) {
	t.Parallel()
	c := newChat(t, nil)
	for _, cause := range []error{errOpenTimeout, errClientTimeout, errReadTimeout, context.DeadlineExceeded, io.ErrUnexpectedEOF, syscall.ECONNREFUSED} {
		wrapped := &url.Error{Op: "Post", URL: "http://10.1.2.3:4000/v1?key=x", Err: fmt.Errorf("dial 10.1.2.3: %w", cause)}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(wrapped)
		if got := causeOf(wrapped); got == "" || strings.Contains(got, "10.1.2.3") {
			t.Errorf("%v: the cause is %q", cause, got)
		}
		if got := c.fromTransport(ctx, wrapped, sent); strings.Contains(got.Detail, "10.1.2.3") {
			t.Errorf("%v: the detail is %q", cause, got.Detail)
		}
		cancel(nil)
	}
}
