package app_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/app"
)

const stateYAML = `
keys:
  root: {key: "${file:DIR/root}", admin: true}
  ann: {key: "${file:DIR/ann}", tools: [calculator]}
tools:
  builtin: [calculator, get_current_time]
  mcp: {gone: {command: /does/not/exist/lathe-test, args: [--token, ROOT-0123456789abcdef], allowlist: ['*']}}
policy: {tools: {calculator: ask}}
audit: {path: audit.jsonl}
`

// call makes a request with a key and returns its status and body.
func call(t *testing.T, h http.Handler, key, method, path, body string) (int, string) {
	t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "127.0.0.1"
	r.Header.Set("Authorization", "Bearer "+key)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// Operators see the parts of the server without its secrets; other keys see what is theirs.
func TestStateOfTheServer(t *testing.T) {
	const root, ann = "ROOT-0123456789abcdef", "ANN-0123456789abcdef"
	dir := t.TempDir()
	for name, key := range map[string]string{"root": root, "ann": ann} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(key), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a := open(t, strings.ReplaceAll(stateYAML, "DIR", dir), &app.Options{Version: "v9"})
	h := a.Handler()
	type want struct {
		status int
		has    []string
		lacks  []string
	}
	for what, w := range map[string]struct {
		key, method, path, body string
		want
	}{
		"settings with their docs": {root, "GET", "/api/config", "", want{200, []string{`"key":"serve.addr","value":"127.0.0.1:8700","origin":"default","about":"Address to listen on.`, `"default":"127.0.0.1:8700","restart":true}`,
			`"key":"policy.tools.calculator","value":"ask","origin":`, `"default":"10s","restart":true}`, `"default":"false"}`}, []string{`"about":"","`}}},
		"servers of an admin":      {root, "GET", "/api/servers", "", want{200, []string{`"name":"gone"`, `"problem":"program"`, `"last_error":`, `"target":"/does/not/exist`}, nil}},
		"servers of a key":         {ann, "GET", "/api/servers", "", want{200, nil, []string{"last_error", "target", "exist"}}},
		"an unknown server":        {root, "POST", "/api/servers/other/reconnect", "", want{404, nil, nil}},
		"a server of a key":        {ann, "POST", "/api/servers/gone/reconnect", "", want{403, []string{"admin_required"}, nil}},
		"a server":                 {root, "POST", "/api/servers/gone/reconnect", "", want{202, nil, nil}},
		"pins of a key":            {ann, "GET", "/api/pins", "", want{403, []string{"admin_required"}, nil}},
		"pins":                     {root, "GET", "/api/pins", "", want{200, []string{`{"data":[]}`}, nil}},
		"an unknown definition":    {root, "POST", "/api/pins/gone__x/accept", `{"digest":"00"}`, want{409, []string{"not known"}, nil}},
		"a definition not shown":   {root, "POST", "/api/pins/gone__x/accept", `{}`, want{400, []string{"digest"}, nil}},
		"a tool":                   {ann, "GET", "/api/tools/calculator", "", want{200, []string{`"policy":"ask"`, `"policy_rule":"tools.ask"`, `"parameters":`}, nil}},
		"a tool of others":         {ann, "GET", "/api/tools/get_current_time", "", want{403, nil, nil}},
		"models":                   {ann, "GET", "/api/models", "", want{200, []string{`"name":"sim/`, `"max_iterations":`}, nil}},
		"keys of an admin":         {root, "GET", "/api/keys", "", want{200, []string{`"name":"ann"`, `"role":"admin"`}, nil}},
		"keys of a key":            {ann, "GET", "/api/keys", "", want{200, []string{`"name":"ann"`, `"active":1`}, []string{"root"}}},
		"policy":                   {ann, "POST", "/api/policy/explain", `{"tool":"calculator","arguments":{"expression":"1"}}`, want{200, []string{`"decision":"ask"`, `"decides":true`}, nil}},
		"policy for another":       {ann, "POST", "/api/policy/explain", `{"tool":"calculator","principal":"root"}`, want{403, nil, nil}},
		"policy of a forbidden":    {ann, "POST", "/api/policy/explain", `{"tool":"get_current_time"}`, want{403, nil, nil}},
		"policy with no object":    {ann, "POST", "/api/policy/explain", `{"tool":"calculator","arguments":[]}`, want{400, nil, nil}},
		"policy after no tool":     {root, "POST", "/api/policy/explain", `{"tool":"calculator","used":["other"]}`, want{400, nil, nil}},
		"audit of a key":           {ann, "GET", "/api/audit", "", want{403, nil, nil}},
		"audit":                    {root, "GET", "/api/audit?limit=5", "", want{200, []string{`"ok":true`, `"kind":"begin"`, `"prev":"000`, `"head":"1:`}, nil}},
		"audit with a wrong limit": {root, "GET", "/api/audit?limit=1001", "", want{400, nil, nil}},
		"configuration of a key":   {ann, "GET", "/api/config", "", want{403, nil, nil}},
		"configuration":            {root, "GET", "/api/config", "", want{200, []string{`"key":"audit.path"`, `"origin":`}, nil}},
		"health of a key":          {ann, "GET", "/api/health", "", want{403, nil, nil}},
		"health":                   {root, "GET", "/api/health", "", want{200, []string{`"ready":true`, `"version":"v9"`, `"store":"memory"`, `{"name":"server gone","ok":false`}, nil}},
	} {
		status, body := call(t, h, w.key, w.method, w.path, w.body)
		if status != w.status {
			t.Errorf("%s: status %d, want %d: %s", what, status, w.status, body)
		}
		for _, s := range w.has {
			if !strings.Contains(body, s) {
				t.Errorf("%s: no %s in %s", what, s, body)
			}
		}
		for _, s := range append(w.lacks, root, ann) {
			if strings.Contains(body, s) {
				t.Errorf("%s: %s in %s", what, s, body)
			}
		}
	}
}

// The lines of one tool call have its run and its id, by which a client can group them.
func TestStateNamesTheCallOfAnAuditLine(t *testing.T) {
	a := open(t, "audit: {path: '"+filepath.Join(t.TempDir(), "audit.jsonl")+"'}\n", nil)
	h := a.Handler()
	if status, body := call(t, h, "", "POST", "/api/tools/calculator/call", `{"arguments":{"expression":"1"}}`); status != 200 {
		t.Fatal(status, body)
	}
	_, body := call(t, h, "", "GET", "/api/audit", "")
	var got struct {
		Data []struct {
			Type       string
			RunID      string `json:"run_id"`
			ToolCallID string `json:"tool_call_id"`
		}
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	types := map[string]bool{}
	for _, l := range got.Data {
		if l.RunID != "" && l.ToolCallID == "call_1" {
			types[l.Type] = true
		}
	}
	for _, want := range []string{"ToolCallPlanned", "Call", "ToolCallResult"} {
		if !types[want] {
			t.Errorf("no line of type %s has the call's id: %s", want, body)
		}
	}
}

func TestStateShowsABrokenAuditLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	a := open(t, "audit: {path: '"+path+"'}\n", nil)
	h := a.Handler()
	for range 2 {
		if status, body := call(t, h, "", "POST", "/api/tools/calculator/call", `{"arguments":{"expression":"1"}}`); status != 200 {
			t.Fatal(status, body)
		}
	}
	log, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(log), `"expression`, `"expressiom`, 1)
	if changed == string(log) {
		changed = strings.Replace(string(log), `"calculator"`, `"calculatur"`, 1)
	}
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	status, body := call(t, h, "", "GET", "/api/audit", "")
	var got struct {
		OK     bool
		Broken string
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil || status != 200 || got.OK || !strings.Contains(got.Broken, "audit.jsonl:") {
		t.Errorf("%d %s", status, body)
	}
}
