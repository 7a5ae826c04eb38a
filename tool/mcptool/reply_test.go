package mcptool

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
)

// A reply that the protocol library cannot decode ends the call that waits for it, at once: the idle timeout of these calls is an hour.
func TestReplyThatCannotBeDecodedEndsItsCall(t *testing.T) {
	t.Parallel()
	conf := testConf(t, "")
	conf.IdleTimeout, conf.CallTimeout = time.Hour, time.Hour
	r := newRig(t, nil, conf)
	raw := &rpcServer{}
	server := httptest.NewServer(raw)
	t.Cleanup(server.Close)
	web := httpConf(server.URL)
	web.IdleTimeout, web.CallTimeout = time.Hour, time.Hour
	over := newRig(t, nil, web)
	t.Cleanup(func() { _ = over.group.Close() })
	for name, tt := range map[string]struct {
		message string
		want    lathe.Code
		content string
		only    string // over HTTP, where the answer of a request can only be its reply
	}{
		"a code that is text":         {`{"jsonrpc":"2.0","id":ID,"error":{"code":"E_FAIL","message":"the quota is used up"}}`, lathe.CodeExecutionFailed, "the quota is used up", ""},
		"a code with a fraction":      {`{"jsonrpc":"2.0","id":ID,"error":{"code":-32000.5,"message":"no"}}`, lathe.CodeExecutionFailed, "no", ""},
		"an error that is text":       {`{"jsonrpc":"2.0","id":ID,"error":"out of order"}`, lathe.CodeExecutionFailed, "out of order", ""},
		"an error that is a list":     {`{"jsonrpc":"2.0","id":ID,"error":[]}`, lathe.CodeExecutionFailed, "", ""},
		"neither result nor error":    {`{"jsonrpc":"2.0","id":ID}`, lathe.CodeInvalidOutput, "", ""},
		"no version":                  {`{"id":ID,"error":{"code":1,"message":"old"}}`, lathe.CodeExecutionFailed, "old", ""},
		"no version, a result":        {`{"id":ID,"result":{"content":[{"type":"text","text":"old"}]}}`, "", "old", ""},
		"the id with a fraction":      {`{"jsonrpc":"2.0","id":ID.0,"result":{"content":[{"type":"text","text":"float"}]}}`, "", "float", ""},
		"the error of no request":     {`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"which request?"}}`, lathe.CodeExecutionFailed, "which request?", "http"},
		"the result of another":       {`{"jsonrpc":"2.0","id":"other","result":{"content":[]}}`, lathe.CodeInvalidOutput, "", "http"},
		"a notification in its place": {`{"jsonrpc":"2.0","method":"notifications/x"}`, lathe.CodeInvalidOutput, "", "http"},
	} {
		message := tt.message
		raw.mu.Lock()
		raw.call = func(w http.ResponseWriter, id string) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, strings.ReplaceAll(message, "ID", id))
		}
		raw.mu.Unlock()
		res := over.call("web__do", map[string]int{})
		wantCode(t, res, tt.want)
		if !strings.Contains(res.Content, tt.content) {
			t.Errorf("%s over HTTP: got %s", name, res.Content)
		}
		if tt.only != "" {
			continue
		}
		res = r.call("box__any_thing", map[string]any{"do": "as", "message": message})
		wantCode(t, res, tt.want)
		if !strings.Contains(res.Content, tt.content) {
			t.Errorf("%s: got %s", name, res.Content)
		}
	}
	if st := r.group.Status()[0]; st.Starts != 1 {
		t.Errorf("the server was started again: %+v", st)
	}
}

// The address to which a server redirects is in its status, without a query, and of another origin only that.
func TestRedirectIsNamed(t *testing.T) {
	t.Parallel()
	for location, want := range map[string]string{
		"/mcp/?token=canary":              "SELF/mcp/",
		"http://other.example/mcp?canary": "http://other.example, and",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", location)
			w.WriteHeader(http.StatusTemporaryRedirect)
		}))
		r := newRig(t, nil, httpConf(server.URL+"/mcp"))
		st := r.group.Status()[0]
		if want := strings.ReplaceAll(want, "SELF", server.URL); st.Problem != ProblemRedirect || !strings.Contains(st.LastError, "HTTP 307: the server redirects to "+want) || strings.Contains(st.LastError, "canary") {
			t.Errorf("%s: %s, %s", location, st.Problem, st.LastError)
		}
		_ = r.group.Close()
		server.Close()
	}
}

// An answer that is no MCP message is reported as that, and not with the status of what was tried after it.
func TestForeignContentTypeIsReported(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"", "text/html"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPost {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			w.Header()["Content-Type"] = map[bool][]string{true: {kind}}[kind != ""]
			w.Header().Set(sessionHeader, "s1")
			_, _ = io.WriteString(w, "hello")
		}))
		r := newRig(t, nil, httpConf(server.URL))
		if st := r.group.Status()[0]; st.Problem != ProblemHTTP || !strings.Contains(st.LastError, `unsupported content type "`+kind+`"`) || strings.Contains(st.LastError, "HTTP") {
			t.Errorf("%q: %s, %s", kind, st.Problem, st.LastError)
		}
		_ = r.group.Close()
		server.Close()
	}
}
