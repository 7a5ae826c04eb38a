package mcptool

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
)

// A server of 2025-03-26 may put what it says into batches. They are read; one without end is not.
func TestBatchesOfServersAreRead(t *testing.T) {
	t.Parallel()
	const log, call = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`, `{"jsonrpc":"2.0","id":%s,"method":"roots/list"}`
	answer := func(id string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[{"type":"text","text":"ok"}]}}`
	}
	long := func(id string) string {
		return `[` + answer(id) + strings.Repeat(`,`+log, maxBatch) + `]`
	}
	for name, tt := range map[string]struct {
		kind, before, after string
		body                func(id string) string
		ok                  bool
		bad                 int // -1: the connection is given up
	}{
		"events":               {"text/event-stream", "data: ", "\n\n", func(id string) string { return `[` + log + `,` + answer(id) + `]` }, true, 0},
		"events, one by one":   {"text/event-stream", "data: ", "\n\n", func(id string) string { return "[" + log + "]\n\ndata: [" + answer(id) + "]" }, true, 0},
		"events, with garbage": {"text/event-stream", "data: ", "\n\n", func(id string) string { return `[1,[` + log + `],` + answer(id) + `]` }, true, 2},
		"events, too many":     {"text/event-stream", "data: ", "\n\n", long, false, -1},
		"JSON":                 {"application/json", " ", " ", func(id string) string { return `[` + fmt.Sprintf(call, id) + `,` + answer(id) + `,` + log + `]` }, true, 0},
		"JSON, without answer": {"application/json", "", "", func(string) string { return `[` + log + `]` }, false, 1},
		"JSON, empty":          {"application/json", "", "", func(string) string { return `[]` }, false, 2},
		"JSON, too many":       {"application/json", "", "", long, false, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw := &rpcServer{call: func(w http.ResponseWriter, id string) {
				w.Header().Set("Content-Type", tt.kind)
				fmt.Fprint(w, tt.before+tt.body(id)+tt.after)
			}}
			server := httptest.NewServer(raw)
			defer server.Close()
			conf := httpConf(server.URL)
			conf.Effects = map[string]lathe.Effect{"do": lathe.ReadOnly}
			r := newRig(t, nil, conf)
			defer r.group.Close()
			got := r.call("web__do", map[string]int{})
			if tt.ok && got.Content != "ok" || !tt.ok && got.Code != lathe.CodeInvalidOutput && got.Code != lathe.CodeUnavailable {
				t.Errorf("got %+v", got)
			}
			if st := r.group.Status()[0]; tt.bad >= 0 && st.BadMessages != tt.bad {
				t.Errorf("%d messages could not be used, want %d", st.BadMessages, tt.bad)
			}
		})
	}
}

func TestBatchesOverLines(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, testConf(t, "batched"))
	defer r.group.Close()
	if got := r.call("box__echo", map[string]string{"text": "a"}); got.Content != "a" {
		t.Errorf("got %+v, status %+v", got, r.group.Status()[0])
	}
}
