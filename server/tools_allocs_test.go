//go:build !race

package server_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/tool"
)

// What a request allocates does not grow with the tools that it offers: the list, its hash and its encoded form on each wire are those of
// the request before. A pointer for each of 2,000 tools would be 16 KB.
func TestRequestsWithManyToolsAllocateLittle(t *testing.T) {
	for w, message := range map[lathe.Wire]string{
		lathe.WireOpenAIChat: wholeHead + `"content":"word"},"logprobs":null,"finish_reason":"stop"}` + wholeTail,
		lathe.WireResponses:  `{"id":"r","object":"response","created_at":1,"status":"completed","model":"m","output":[{"type":"message","id":"i","status":"completed","role":"assistant","content":[{"type":"output_text","text":"word","annotations":[]}]}],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}`,
		lathe.WireMessages:   `{"id":"a","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"word"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`,
		lathe.WireGemini:     `{"candidates":[{"content":{"role":"model","parts":[{"text":"word"}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1,"totalTokenCount":2},"modelVersion":"m"}`,
	} {
		t.Run(string(w), func(t *testing.T) { requestsWithManyTools(t, w, message) })
	}
}

func requestsWithManyTools(t *testing.T, w lathe.Wire, message string) {
	const many, batch = 2000, 20
	const maxBytes, maxAllocs = 71_000, 376
	chat, err := provider.New(w, "m", &provider.Options{BaseURL: "http://127.0.0.1:1/v1", Transport: answers(message)})
	if err != nil {
		t.Fatal(err)
	}
	var list []lathe.Tool
	for i := range many {
		list = append(list, tool.Func(fmt.Sprintf("tool_%04d", i), "Changes an entry of the catalogue.", func(context.Context, struct {
			ID string `json:"id"`
		}) (string, error) {
			return "", nil
		}, &tool.FuncOptions{Effect: lathe.ReadOnly, Show: []string{"*"}}))
	}
	limits := lathe.Limits{MaxTools: many, MaxToolsBytes: 1 << 30}
	set, err := tool.NewSetWithin(limits, list...)
	if err != nil {
		t.Fatal(err)
	}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.All(policy.Default(), policy.Trifecta{}, policy.Taint{}, policy.Budget{}), Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	l, err := loop.New(chat, runner, nil)
	if err != nil {
		t.Fatal(err)
	}
	kept := store.NewMemory(&store.MemoryOptions{MaxRuns: 64, Share: 4})
	eng := newEngine(t, &engine.Options{Store: kept, FlushBeforeEnd: true})
	g, err := server.New(&server.Options{Setup: server.Setup{Models: oneModel{&server.Model{Loop: l, Limits: limits}}, Tools: &tools{set, runner}}, Engine: eng, Index: kept, Approvals: approval.NewQueue(nil)})
	if err != nil {
		t.Fatal(err)
	}
	body := []byte(ask("m", "Say something.", ""))
	request := func() {
		r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", bytes.NewReader(body))
		r.Host, r.RemoteAddr = "127.0.0.1:8700", "127.0.0.1:1024"
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"content":"word"`) {
			t.Fatalf("%d: %s", w.Code, w.Body)
		}
	}
	for range 100 {
		request()
	}
	least, allocs := leastAllocated(20, batch, request)
	if least > maxBytes || allocs > maxAllocs {
		t.Errorf("%d bytes and %d allocations, at most %d and %d are allowed", least, allocs, maxBytes, maxAllocs)
	}
	t.Logf("%d bytes, %d allocations", least, allocs)
}
