package mcptool

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lathe-run/lathe/event"
)

// operations keeps what it observes.
type operations struct {
	mu   sync.Mutex
	seen []event.MCPOperation
}

func (o *operations) MCPStarted(ctx context.Context, _ *event.MCPOperation) context.Context {
	return ctx
}

func (o *operations) MCPEnded(_ context.Context, op *event.MCPOperation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen = append(o.seen, *op)
}

func (o *operations) of(method string) []event.MCPOperation {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []event.MCPOperation
	for _, op := range o.seen {
		if op.Method == method {
			out = append(out, op)
		}
	}
	return out
}

// Each request to a server is observed with its outcome, over streams and over HTTP.
func TestRequestsAreObserved(t *testing.T) {
	t.Parallel()
	o := &operations{}
	r := newRig(t, &Options{Observers: []event.MCPObserver{o}}, testConf(t, ""))
	for _, do := range []string{"refuse", "none"} {
		r.do(do)
	}
	r.call("box__any_thing", map[string]any{"do": "raw", "result": `{"content":[],"isError":true}`})
	r.call("box__any_thing", map[string]any{"do": "utf8"})
	calls := o.of("tools/call")
	if len(calls) != 4 {
		t.Fatalf("%d calls: %+v", len(calls), calls)
	}
	for i, want := range []event.MCPOperation{{Code: -32602, Failure: "-32602"}, {}, {Failure: "tool_error"}, {Failure: "other"}} {
		got := calls[i]
		if got.Code != want.Code || got.Failure != want.Failure || got.Tool != "box__any_thing" || got.Protocol != "2025-06-18" || got.Transport != "pipe" || got.Address != "" || got.RequestID == "" ||
			got.Server || got.Began.IsZero() || got.Ended.Before(got.Began) {
			t.Errorf("%d: %+v", i, got)
		}
	}
	if n := len(o.of("initialize")); n != 1 {
		t.Errorf("initialize was observed %d times", n)
	}
	if lists := o.of("tools/list"); len(lists) == 0 || lists[0].Tool != "" || lists[0].Failure != "" {
		t.Errorf("lists: %+v", lists)
	}

	o = &operations{}
	server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return sdkServer() }, nil))
	defer server.Close()
	r = newRig(t, &Options{Observers: []event.MCPObserver{o}}, httpConf(server.URL))
	defer r.group.Close()
	r.call("web__add", map[string]int{"A": 1, "B": 41})
	calls = o.of("tools/call")
	if len(calls) != 1 || calls[0].Transport != "tcp" || calls[0].Address != strings.TrimPrefix(server.URL, "http://") || calls[0].Session == "" || calls[0].Protocol != "2025-11-25" || calls[0].Failure != "" {
		t.Errorf("%+v", calls)
	}
}
