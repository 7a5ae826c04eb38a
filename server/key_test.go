package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
)

// text is the secret of the key of that name, put together so that it looks like none.
func text(name string) string { return strings.Repeat(name+"-", 16) }

func key(name string) server.Key { return server.Key{Name: name, Secret: secret.New(text(name))} }

// A handClock is one that tests move.
type handClock struct {
	mu sync.Mutex
	at time.Time
}

func newHandClock() *handClock { return &handClock{at: time.Unix(1_700_000_000, 0)} }

func (c *handClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *handClock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// checkError wants OpenAI's shape under /v1, with its four members, and RFC 9457's elsewhere.
func checkError(t *testing.T, name string, resp *http.Response, body string, status int, code, param string) {
	t.Helper()
	if resp.StatusCode != status {
		t.Errorf("%s: status %d, want %d: %s", name, resp.StatusCode, status, body)
		return
	}
	if resp.Header.Get("X-Request-Id") == "" {
		t.Errorf("%s: no request id", name)
	}
	if !strings.HasPrefix(resp.Request.URL.Path, "/v1/") {
		var p struct {
			Type, Title, Detail, Instance, Code, Param string
			Status                                     int
		}
		if err := json.Unmarshal([]byte(body), &p); err != nil || resp.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %v: %s", name, err, body)
		}
		if p.Status != status || p.Code != code || p.Param != param || p.Detail == "" || p.Title == "" || !strings.HasSuffix(p.Type, "/docs/errors.md#"+code) ||
			p.Instance != "urn:lathe:request:"+resp.Header.Get("X-Request-Id") {
			t.Errorf("%s: got %+v, want code %s, param %s", name, p, code, param)
		}
		return
	}
	var e struct {
		Error map[string]any `json:"error"`
	}
	if err := json.Unmarshal([]byte(body), &e); err != nil || len(e.Error) != 4 {
		t.Fatalf("%s: %v: %s", name, err, body)
	}
	gotParam, _ := e.Error["param"].(string)
	gotCode, _ := e.Error["code"].(string)
	if gotCode != code || gotParam != param || e.Error["message"] == "" || e.Error["type"] == "" {
		t.Errorf("%s: got %v, want code %q and param %q", name, e.Error, code, param)
	}
}

func TestKeysSayWhoMayDoWhat(t *testing.T) {
	t.Parallel()
	narrow := key("narrow")
	narrow.Models, narrow.Tools = []string{"sim/demo"}, []string{"get_current_time"}
	none := key("none")
	none.Models, none.Tools = []string{}, []string{}
	f := serve(t, &setting{opts: func(o *server.Options) { o.Setup.Keys = []server.Key{key("all"), narrow, none} }})
	as := func(name string) []string { return []string{"Authorization", "Bearer " + text(name)} }
	for name, c := range map[string]struct {
		method, path, body string
		header             []string
		status             int
		code, param        string
	}{
		"no key":                     {"GET", "/v1/models", "", []string{"Authorization", ""}, 401, "missing_api_key", ""},
		"no key under api":           {"GET", "/api/tools", "", []string{"Authorization", ""}, 401, "missing_api_key", ""},
		"no key for metrics":         {"GET", "/metrics", "", []string{"Authorization", ""}, 401, "missing_api_key", ""},
		"another scheme":             {"GET", "/v1/models", "", []string{"Authorization", "Basic " + text("all")}, 401, "missing_api_key", ""},
		"a key of Azure's API":       {"GET", "/v1/models", "", []string{"Authorization", "", "Api-Key", text("all")}, 401, "missing_api_key", ""},
		"an unknown key in a header": {"GET", "/v1/models", "", []string{"Authorization", "", "X-Api-Key", text("other")}, 401, "invalid_api_key", ""},
		"an unknown key":             {"GET", "/v1/models", "", as("other"), 401, "invalid_api_key", ""},
		"half a key":                 {"GET", "/v1/models", "", []string{"Authorization", "Bearer " + text("all")[:20]}, 401, "invalid_api_key", ""},
		"a forbidden model":          {"POST", "/v1/chat/completions", ask("sim/slow", "x", ""), as("narrow"), 403, "model_forbidden", "model"},
		"a model to none":            {"POST", "/v1/chat/completions", ask("sim/demo", "x", ""), as("none"), 403, "model_forbidden", "model"},
		"a model's entry":            {"GET", "/v1/models/sim/slow", "", as("narrow"), 403, "model_forbidden", "model"},
		"an unknown model":           {"POST", "/v1/chat/completions", ask("gpt", "x", ""), as("all"), 404, "model_not_found", "model"},
		"a forbidden tool":           {"POST", "/v1/chat/completions", ask("sim/demo", "x", `,"lathe":{"tools":["calculator"]}`), as("narrow"), 403, "tool_forbidden", "lathe.tools"},
		"a forbidden tool to call":   {"POST", "/api/tools/calculator/call", "{}", as("narrow"), 403, "tool_forbidden", ""},
		"an unknown tool to call":    {"POST", "/api/tools/calculators/call", "{}", as("all"), 404, "unknown_tool", ""},
		"an unknown path":            {"GET", "/v1/nothing", "", as("all"), 404, "unknown_url", ""},
		"an unknown path under api":  {"GET", "/api/nothing", "", as("all"), 404, "unknown_url", ""},
		"another method":             {"GET", "/v1/chat/completions", "", as("all"), 405, "method_not_allowed", ""},
		"another method of the tool": {"GET", "/api/tools/get_current_time/call", "", as("all"), 405, "method_not_allowed", ""},
	} {
		resp, body := f.do(c.method, c.path, c.body, c.header...)
		checkError(t, name, resp, body, c.status, c.code, c.param)
		for _, k := range []string{"all", "narrow", "none"} {
			if strings.Contains(body, text(k)) {
				t.Errorf("%s: the answer has a key in it: %s", name, body)
			}
		}
	}
	for _, scheme := range []string{"bearer ", "BEARER  ", "Bearer "} {
		if resp, body := f.do("GET", "/v1/models", "", "Authorization", scheme+text("all")); resp.StatusCode != http.StatusOK {
			t.Errorf("scheme %q: %d %s", scheme, resp.StatusCode, body)
		}
	}
	for path, given := range map[string][]string{
		"/v1/models": {"X-Api-Key", text("all")}, "/v1beta/models": {"X-Goog-Api-Key", text("all")}, "/v1beta/models?key=" + text("all"): nil, "/api/tools": {"X-Api-Key", text("all")},
	} {
		if resp, body := f.do("GET", path, "", append([]string{"Authorization", ""}, given...)...); resp.StatusCode != http.StatusOK {
			t.Errorf("%s with the key in %v: %d %s", path, given, resp.StatusCode, body)
		}
	}
	for path, given := range map[string][]string{
		"/v1beta/models":                     {"X-Goog-Api-Key", text("other")},
		"/api/tools?key=" + text("all"):      nil,
		"/v1/responses?key=" + text("all"):   nil,
		"/v1beta/models?key=" + text("none"): {"Authorization", "Bearer " + text("other")}, // the bearer token counts
	} {
		method := "GET"
		if strings.HasPrefix(path, "/v1/responses") {
			method = "POST"
		}
		if resp, body := f.do(method, path, "", append([]string{"Authorization", ""}, given...)...); resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s with the key in %v: %d %s", path, given, resp.StatusCode, body)
		}
	}
	if _, body := f.do("GET", "/v1/models", "", as("narrow")...); !strings.Contains(body, "sim/demo") || strings.Contains(body, "sim/slow") {
		t.Errorf("narrow sees the models %s", body)
	}
	if _, body := f.do("GET", "/v1/models", "", as("none")...); !strings.Contains(body, `"data":[]`) {
		t.Errorf("none sees the models %s", body)
	}
	if _, body := f.do("GET", "/api/tools", "", as("narrow")...); !strings.Contains(body, `"get_current_time"`) || strings.Contains(body, "calculator") {
		t.Errorf("narrow sees the tools %s", body)
	}
	// A run of the narrow key is offered its tool alone, whatever the request says or leaves out.
	f.complete(ask("sim/demo", twoTools, ""), as("narrow")...)
	if sent := f.seen.all(); strings.Contains(sent[0], `"calculator"`) || !strings.Contains(sent[0], `"get_current_time"`) {
		t.Errorf("the model was sent %s", sent[0])
	}
	if rows := f.stored(&store.RunFilter{Principal: "narrow"}); len(rows) != 1 {
		t.Errorf("the store has %d runs of narrow, want 1", len(rows))
	}
}

func TestTenantsDoNotSeeEachOther(t *testing.T) { // T25
	t.Parallel()
	f := serve(t, &setting{opts: func(o *server.Options) { o.Setup.Keys = []server.Key{key("a"), key("b")} }})
	run := f.complete(ask("sim/demo", "What is 7 + 35?", "")).Lathe.RunID
	if _, body := f.do("GET", "/api/summaries", ""); !strings.Contains(body, run) {
		t.Errorf("a does not see its own run: %s", body)
	}
	for _, query := range []string{"", "?run_id=" + run, "?principal=a"} {
		if _, body := f.do("GET", "/api/summaries"+query, "", "Authorization", "Bearer "+text("b")); strings.Contains(body, run) {
			t.Errorf("b sees the run of a under %q: %s", query, body)
		}
	}
}

func TestKeysAreLimited(t *testing.T) {
	t.Parallel()
	now := newHandClock()
	limited := key("limited")
	limited.RequestsPerMinute = 2
	f := serve(t, &setting{opts: func(o *server.Options) {
		o.Setup.Keys = []server.Key{limited, key("other")}
		o.Now = now.now
	}})
	for i, want := range []int{200, 200, 429, 429} {
		resp, body := f.do("GET", "/v1/models", "")
		if resp.StatusCode != want {
			t.Fatalf("request %d: status %d, want %d", i, resp.StatusCode, want)
		}
		if want == 429 {
			checkError(t, "too many", resp, body, 429, "rate_limit_exceeded", "")
			if got := resp.Header.Get("Retry-After"); got != "30" {
				t.Errorf("Retry-After %q, want 30", got)
			}
		}
	}
	if resp, _ := f.do("GET", "/v1/models", "", "Authorization", "Bearer "+text("other")); resp.StatusCode != 200 {
		t.Errorf("another key: status %d", resp.StatusCode)
	}
	now.add(30 * time.Second)
	for i, want := range []int{200, 429} {
		if resp, _ := f.do("GET", "/v1/models", ""); resp.StatusCode != want {
			t.Errorf("later, request %d: status %d, want %d", i, resp.StatusCode, want)
		}
	}
}

func TestKeyConcurrency(t *testing.T) { // T18
	t.Parallel()
	one := key("one")
	one.Concurrency = 1
	began, release := make(chan struct{}), make(chan struct{})
	model := &fake{turn: func(int, *lathe.Request) lathe.Message {
		began <- struct{}{}
		<-release
		return says(lathe.Text{Text: "ok"})
	}}
	f := serve(t, &setting{model: model, opts: func(o *server.Options) {
		o.Setup.Keys = []server.Key{one}
		o.Limits.MaxConcurrent = 2
	}})
	var first sync.WaitGroup
	first.Go(func() { f.complete(ask("sim/x", "x", "")) })
	<-began
	resp, body := f.do("POST", "/v1/chat/completions", ask("sim/x", "x", ""))
	checkError(t, "a second", resp, body, 429, "rate_limit_exceeded", "")
	close(release)
	first.Wait()
	if resp, _ := f.do("GET", "/v1/models", ""); resp.StatusCode != 200 {
		t.Errorf("after it: status %d", resp.StatusCode)
	}
}

func TestSetupIsChecked(t *testing.T) {
	t.Parallel()
	short, again := key("short"), key("b")
	short.Secret = secret.New("short")
	again.Secret = secret.New(text("a"))
	for name, keys := range map[string][]server.Key{
		"no name": {{Secret: secret.New(text("a"))}}, "twice": {key("a"), key("a")}, "short": {short}, "the same secret": {key("a"), again}, "no secret": {{Name: "a"}},
	} {
		f := serve(t, nil)
		_, err := f.gateway.Reload(&server.Setup{Models: f.models, Keys: keys})
		if lathe.CodeOf(err) != lathe.CodeInvalidConfig {
			t.Errorf("%s: error %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), text("a")) {
			t.Errorf("%s: the error has the key in it", name)
		}
		if resp, _ := f.do("GET", "/v1/models", ""); resp.StatusCode != 200 {
			t.Errorf("%s: a bad setup changed something: status %d", name, resp.StatusCode)
		}
	}
}

// A request with the keys of two callers is refused: which caller sent it must not depend on the place of a key. The same key
// in several places, or beside a text that is no key of this server, is one key.
func TestRequestWithTheKeysOfTwoCallersIsRefused(t *testing.T) {
	t.Parallel()
	f := serve(t, &setting{opts: func(o *server.Options) { o.Setup.Keys = []server.Key{key("all"), key("other")} }})
	const refused, accepted, unknown = http.StatusBadRequest, http.StatusOK, http.StatusUnauthorized
	bearer := func(name string) []string { return []string{"Authorization", "Bearer " + text(name)} }
	none := []string{"Authorization", ""}
	for name, c := range map[string]struct {
		path   string
		header []string
		status int
	}{
		"bearer and Anthropic's header":  {"/v1/models", append(bearer("all"), "X-Api-Key", text("other")), refused},
		"bearer and Google's header":     {"/v1/models", append(bearer("other"), "X-Goog-Api-Key", text("all")), refused},
		"bearer and the query":           {"/v1beta/models?key=" + text("other"), bearer("all"), refused},
		"two headers":                    {"/v1/models", append(none, "X-Api-Key", text("all"), "X-Goog-Api-Key", text("other")), refused},
		"a header and the query":         {"/v1beta/models?key=" + text("other"), append(none, "X-Goog-Api-Key", text("all")), refused},
		"the third differs":              {"/v1beta/models?key=" + text("other"), append(bearer("all"), "X-Goog-Api-Key", text("all")), refused},
		"the same in all places":         {"/v1beta/models?key=" + text("all"), append(bearer("all"), "X-Api-Key", text("all"), "X-Goog-Api-Key", text("all")), accepted},
		"an unknown one beside a bearer": {"/v1/models", append(bearer("all"), "X-Api-Key", text("placeholder")), accepted},
		"an empty header beside another": {"/v1/models", append(none, "X-Api-Key", "", "X-Goog-Api-Key", text("all")), accepted},
		"an unknown bearer":              {"/v1/models", append(bearer("placeholder"), "X-Api-Key", text("all")), unknown},
	} {
		resp, body := f.do("GET", c.path, "", c.header...)
		if resp.StatusCode != c.status || (c.status == refused) != strings.Contains(body, "conflicting_api_keys") {
			t.Errorf("%s: %d %s, want %d", name, resp.StatusCode, body, c.status)
		}
		if strings.Contains(body, text("all")) || strings.Contains(body, text("other")) {
			t.Errorf("%s: the answer has a key in it: %s", name, body)
		}
	}
}

// The series of /metrics name every key, so a key reads them only with the right to: its own, that of an operator, or that of
// the profile whose rights it has. Without keys every client reads them.
func TestMetricsNeedARight(t *testing.T) {
	t.Parallel()
	admin, scrape := key("root"), key("scrape")
	admin.Admin, scrape.Metrics = true, true
	f := serve(t, keyed(nil, key("bob"), admin, scrape))
	for name, want := range map[string]int{"bob": 403, "root": 200, "scrape": 200} {
		resp, body := f.do("GET", "/metrics", "", "Authorization", "Bearer "+text(name))
		if want == 200 {
			if resp.StatusCode != 200 || !strings.Contains(body, "lathe_") {
				t.Errorf("%s: status %d: %s", name, resp.StatusCode, body)
			}
			continue
		}
		checkError(t, name, resp, body, want, "admin_required", "")
	}
	if resp, body := f.do("GET", "/api/audit", "", "Authorization", "Bearer "+text("scrape")); resp.StatusCode != 403 {
		t.Errorf("a key for metrics is an admin key: status %d: %s", resp.StatusCode, body)
	}
	if resp, _ := serve(t, nil).do("GET", "/metrics", ""); resp.StatusCode != 200 {
		t.Errorf("without keys: status %d", resp.StatusCode)
	}
}
