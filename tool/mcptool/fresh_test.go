package mcptool

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// TestListsAreKeptAsLongAsTheirHintSays: a list with a hint is asked for again when it is stale, without a notice of the server.
func TestListsAreKeptAsLongAsTheirHintSays(t *testing.T) {
	t.Parallel()
	var lists atomic.Int32
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
			const do, more = `{"name":"do","inputSchema":{"type":"object"}}`, `,{"name":"more","inputSchema":{"type":"object"}}`
			tools, ttl := do, 1
			if lists.Add(1) > 1 {
				tools, ttl = do+more, 0
			}
			result = fmt.Sprintf(`{"tools":[%s],"resultType":"complete","ttlMs":%d,"cacheScope":"private"}`, tools, ttl)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}))
	t.Cleanup(server.Close)
	r := newRig(t, nil, httpConf(server.URL))
	defer r.group.Close()
	if st := r.states(); st["web__do"].State != ToolReady { // and perhaps the other one by now
		t.Fatalf("at first there are %+v", st)
	}
	r.await("the list is asked for again", func() bool { return len(r.states()) == 2 })
}

func TestHintsOfListsAreBounded(t *testing.T) {
	t.Parallel()
	for page, want := range map[string]time.Duration{
		`{}`: 0, `{"ttlMs":0}`: 0, `{"ttlMs":-5}`: 0, `{"ttlMs":"9000"}`: 0, `{"ttlMs":null}`: 0, `{"ttlMs":1.5}`: 0, `{"ttlMs":99999999999999999999}`: 0,
		`{"ttlMs":1}`: time.Second, `{"ttlMs":60000}`: time.Minute, `{"ttlMs":9223372036854775807}`: 24 * time.Hour,
	} {
		if got := freshFor([]byte(page)); got != want {
			t.Errorf("%s: %v, want %v", page, got, want)
		}
	}
	for _, c := range [][3]time.Duration{{0, 0, 0}, {0, 2, 2}, {2, 0, 2}, {2, 3, 2}, {3, 2, 2}} {
		if got := shorter(c[0], c[1]); got != c[2] {
			t.Errorf("of %v and %v: %v", c[0], c[1], got)
		}
	}
}
