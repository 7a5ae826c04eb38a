package server_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// Paths of other APIs are answered in the form that their clients read, with the path to use.
func TestForeignPathsSayWhatToUse(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	for path, want := range map[string]string{
		"/chat/completions":                      "Did you mean /v1/chat/completions?",
		"/responses":                             "Did you mean /v1/responses?",
		"/v1/v1/messages":                        "Did you mean /v1/messages?",
		"/models":                                "Did you mean /v1/models?",
		"/models/sim/demo":                       "Did you mean /v1/models/sim/demo?",
		"/v1/embeddings":                         "/v1/chat/completions",
		"/completions":                           "/v1/chat/completions",
		"/openai/deployments/m/chat/completions": "Azure",
		"/openai/v1/chat/completions":            "Azure",
		"/v1/openai/deployments/x":               "GET /api/openapi.json",
		"/v1/chat/completions/extra":             "GET /api/openapi.json",
	} {
		method := "POST"
		if strings.HasPrefix(path, "/models") { // which clients read
			method = "GET"
		}
		resp, body := f.do(method, path, `{}`)
		var got struct {
			Error struct{ Message, Type, Code string }
		}
		if err := json.Unmarshal([]byte(body), &got); err != nil || resp.StatusCode != http.StatusNotFound || got.Error.Code != "unknown_url" || !strings.Contains(got.Error.Message, want) {
			t.Errorf("%s: %d %s, want %q in OpenAI's form", path, resp.StatusCode, body, want)
		}
	}
	for path, want := range map[string]string{
		"/models/sim/demo:generateContent": `{"error":{"code":404,"message":"There is nothing at this path. Did you mean /v1beta/models/sim/demo:generateContent? The base URL of this client must end in /v1beta.","status":"NOT_FOUND"`,
		"/models/m:streamGenerateContent":  `"status":"NOT_FOUND"`,
		"/messages":                        `{"type":"error","error":{"type":"not_found_error","message":"There is nothing at this path. Did you mean /v1/messages?`,
		"/messages/count_tokens":           `"type":"not_found_error"`,
	} {
		if resp, body := f.do("POST", path, `{}`); resp.StatusCode != http.StatusNotFound || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s, want %s", path, resp.StatusCode, body, want)
		}
	}
	for _, c := range []struct{ method, path string }{{"GET", "/api/tags"}, {"POST", "/api/show"}, {"GET", "/api/version"}, {"POST", "/api/generate"}, {"POST", "/api/embed"}} {
		resp, body := f.do(c.method, c.path, "")
		var got struct{ Error, Code string }
		if err := json.Unmarshal([]byte(body), &got); err != nil || resp.StatusCode != http.StatusNotFound || !strings.Contains(got.Error, "base URL /v1") {
			t.Errorf("%s: %d %s", c.path, resp.StatusCode, body)
		}
	}
}

// A body for Ollama's POST /api/chat runs nothing: it has no conversation of a page.
func TestChatRefusesOllamasBody(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	for _, body := range []string{
		`{"model":"sim/demo","messages":[{"role":"user","content":"What is 7 + 35?"}],"stream":false}`,
		`{"model":"sim/demo","messages":[{"role":"user","content":"What is 7 + 35?"}],"options":null}`,
		`{"model":"sim/demo","messages":[{"role":"user","content":"What is 7 + 35?"}],"keep_alive":"5m"}`,
		`{"model":"sim/demo","messages":[{"role":"user","content":"x"}],"th\u0069nk":true}`,
	} {
		resp, answer := f.do("POST", "/api/chat", body)
		var got struct{ Error, Code string }
		if err := json.Unmarshal([]byte(answer), &got); err != nil || resp.StatusCode != http.StatusBadRequest || !strings.Contains(got.Error, "/v1/chat/completions") {
			t.Errorf("%s: %d %s", body, resp.StatusCode, answer)
		}
	}
	if n := len(f.seen.all()); n != 0 {
		t.Errorf("%d requests reached the model", n)
	}
	resp, body := f.do("POST", "/api/chat", `{"id":"c1","stream":true,"model":"sim/demo","messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"hi"}]}]}`)
	if resp.StatusCode != http.StatusOK {
		t.Errorf("a page with a member of its own: %d %s", resp.StatusCode, body)
	}
}

// What no repeat mends has a status that clients do not repeat, and says who can mend it.
func TestPermanentUpstreamFailures(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status   int
		body     string
		want     int
		says, no string
	}{
		"401":           {401, `{"error":{"message":"Incorrect API key provided: abcdef","code":"invalid_api_key"}}`, 400, "Only the operator", "abcdef"},
		"403":           {403, `{"error":{"message":"project xyzzy"}}`, 400, "Only the operator", "xyzzy"},
		"402":           {402, `{"error":{"message":"account xyzzy"}}`, 400, "cannot pay", "xyzzy"},
		"404":           {404, `{"error":{"message":"The model m does not exist","code":"model_not_found"}}`, 404, "does not have the model", ""},
		"404 tools":     {404, `{"error":{"message":"No endpoints found that support tool use. Try another."}}`, 404, "No endpoints found that support tool use", "does not have the model"},
		"409":           {409, `{"error":{"message":"busy elsewhere"}}`, 400, "busy elsewhere", ""},
		"413":           {413, `{"error":{"message":"Request too large"}}`, 413, "Request too large", ""},
		"413, too long": {413, `{"error":{"message":"prompt is too long: 9 tokens > 8 maximum"}}`, 400, "context_length_exceeded", ""},
		"no quota left": {429, `{"error":{"message":"x","code":"insufficient_quota"}}`, 400, "no quota left", ""},
		"a rate limit":  {429, `{"error":{"message":"x","code":"rate_limit_exceeded"}}`, 429, "no more requests now", ""},
	} {
		f := serve(t, &setting{instead: func(_ int, r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: c.status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(c.body)), Request: r}, nil
		}})
		resp, body := f.do("POST", "/v1/chat/completions", ask("sim/x", "hi", `,"lathe":{"tool_use_mode":"enforced"}`))
		retry := resp.Header.Get("X-Should-Retry") != "false"
		if resp.StatusCode != c.want || !strings.Contains(body, c.says) || c.no != "" && strings.Contains(body, c.no) || retry != (c.want == 429) {
			t.Errorf("%s: %d, retried %v: %s", name, resp.StatusCode, retry, body)
		}
	}
}

// A browser that shows the base URL is sent to the page; a client gets the error that it can read.
func TestBaseURLInABrowserLeadsToThePage(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	for _, c := range []struct {
		path, accept string
		status       int
	}{{"/v1", "text/html,application/xhtml+xml,*/*;q=0.8", 303}, {"/v1/", "application/json, Text/HTML;q=0.9", 303}, {"/v1", "application/json", 404}, {"/v1", "", 404}, {"/v1/x", "text/html", 404}} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", f.url+c.path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", c.accept)
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != c.status || c.status == 303 && (resp.Header.Get("Location") != "/" || resp.Header.Get("Vary") != "Accept") {
			t.Errorf("%s with %q: %d %v", c.path, c.accept, resp.StatusCode, resp.Header)
		}
	}
}
