package mcptool

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

func TestMarks(t *testing.T) {
	t.Parallel()
	property := func(s string) string { return `{"properties":{"a":` + s + `}}` }
	for _, tc := range []struct{ schema, want string }{
		{`{}`, "[]"}, {`{"properties":[]}`, "[]"}, {`{"properties":{"a":1}}`, "[]"},
		{property(`{"type":"string","x-mcp-header":"Region"}`), "[{[a] Region}]"},
		{property(`{"type":["boolean","null"],"x-mcp-header":"R"}`), "[{[a] R}]"},
		{`{"properties":{"b":{"type":["string","null"]},"a":{"type":"integer","x-mcp-header":"R"}}}`, "[{[a] R}]"},
		{property(`{"type":"object","properties":{"b":{"type":"string","x-mcp-header":"R"},"c":{"type":"string","x-mcp-header":"S"}}}`), "[{[a b] R} {[a c] S}]"},
		{property(`{"type":"string","x-mcp-header":""}`), ""},
		{property(`{"type":"string","x-mcp-header":1}`), ""},
		{property(`{"type":"string","x-mcp-header":"a b"}`), ""},
		{property(`{"type":"string","x-mcp-header":"a\r\nb"}`), ""},
		{property(`{"type":"string","x-mcp-header":"ä"}`), ""},
		{property(`{"type":"number","x-mcp-header":"R"}`), ""},
		{property(`{"type":"null","x-mcp-header":"R"}`), ""},
		{property(`{"type":["string","integer"],"x-mcp-header":"R"}`), ""},
		{property(`{"type":"array","x-mcp-header":"R"}`), ""},
		{property(`{"x-mcp-header":"R"}`), ""},
		{`{"properties":{"a":{"type":"string","x-mcp-header":"R"},"b":{"type":"string","x-mcp-header":"r"}}}`, ""},
	} {
		marks, err := readMarks([]byte(tc.schema))
		if got := fmt.Sprint(marks); (err == nil) != (tc.want != "") || err == nil && got != tc.want {
			t.Errorf("%s: got %s, %v", tc.schema, got, err)
		}
	}
	var many strings.Builder
	for i := range maxMarks + 1 {
		fmt.Fprintf(&many, `,"p%d":{"type":"string","x-mcp-header":"H%d"}`, i, i)
	}
	if _, err := readMarks([]byte(`{"properties":{` + many.String()[1:] + `}}`)); err == nil {
		t.Error("too many are taken")
	}
}

func TestHeaderTexts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		value, want string
		none        bool
	}{
		{`"us west"`, "us west", false}, {`""`, "", false}, {`" a"`, "=?base64?IGE=?=", false}, {`"a\r\nX: b"`, "=?base64?YQ0KWDogYg==?=", false},
		{`"ä"`, "=?base64?w6Q=?=", false}, {`"=?base64?x?="`, "=?base64?PT9iYXNlNjQ/eD89?=", false}, {`true`, "true", false}, {`42`, "42", false}, {`-4.2e1`, "-42", false},
		{`9007199254740993`, "", true}, {`1.5`, "", true}, {`null`, "", true}, {`[]`, "", true}, {`{}`, "", true},
	} {
		if got, ok := headerText([]byte(tc.value)); got != tc.want || ok == tc.none {
			t.Errorf("%s: got %q, %v", tc.value, got, ok)
		}
	}
}

// A parameter that is marked goes along as a header, one that is null or left out does not, also
// where other types of the schema are lists.
func TestMarkedParametersGoAlong(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var seen []http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m testMessage
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		result := `{}`
		switch m.Method {
		case "server/discover":
			result = `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"resultType":"complete","ttlMs":0,"cacheScope":"private"}`
		case "tools/list":
			result = `{"tools":[{"name":"do","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"sure":{"type":["boolean","null"],"x-mcp-header":"Sure"},"note":{"type":["string","null"]}}}},
				{"name":"bad","inputSchema":{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"type":"string","x-mcp-header":"a b"}}}}],"resultType":"complete","ttlMs":0,"cacheScope":"private"}`
		case "tools/call":
			mu.Lock()
			seen = append(seen, r.Header.Clone())
			mu.Unlock()
			result = `{"content":[{"type":"text","text":"ok"}]}`
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}))
	t.Cleanup(server.Close)
	r := newRig(t, nil, httpConf(server.URL))
	defer r.group.Close()
	if st := r.states()["web__bad"]; st.State != ToolRefused {
		t.Errorf("got %+v", st)
	}
	for i, args := range []map[string]any{{"region": "eu", "sure": true, "note": "x"}, {"region": "eu", "sure": nil}, {}} {
		if got := r.call("web__do", args); got.Content != "ok" {
			t.Fatalf("got %+v", got)
		}
		mu.Lock()
		h := seen[i]
		mu.Unlock()
		for name, key := range map[string]string{"Mcp-Param-Region": "region", "Mcp-Param-Sure": "sure", "Mcp-Param-Note": ""} {
			want := ""
			if v := args[key]; v != nil {
				want = fmt.Sprint(v)
			}
			if _, there := h[http.CanonicalHeaderKey(name)]; h.Get(name) != want || there != (want != "") {
				t.Errorf("call %d: %s is %q, want %q", i, name, h.Get(name), want)
			}
		}
	}
}
