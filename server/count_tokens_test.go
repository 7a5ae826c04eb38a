package server_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestCountTokens: requests to count tokens need no limit of their answer on Messages, are read as strictly as others, and get
// a number above 0 in the form of their wire.
func TestCountTokens(t *testing.T) {
	f := serve(t, nil)
	for _, tt := range []struct{ path, body, member string }{
		{"/v1/messages/count_tokens", `{"model":"sim/demo","messages":[{"role":"user","content":"a long question"}]}`, "input_tokens"},
		{"/v1/messages/count_tokens", `{"model":"sim/demo","max_tokens":5,"messages":[{"role":"user","content":"a long question"}]}`, "input_tokens"},
		{"/v1beta/models/sim/demo:countTokens", `{"contents":[{"parts":[{"text":"a long question"}]}]}`, "totalTokens"},
	} {
		res, body := f.do("POST", tt.path, tt.body)
		var got map[string]int
		if err := json.Unmarshal([]byte(body), &got); err != nil || res.StatusCode != 200 || got[tt.member] <= 0 {
			t.Errorf("%s: %d %s", tt.path, res.StatusCode, body)
		}
	}
	for _, body := range []string{`{"model":"sim/demo","max_tokens":0,"messages":[{"role":"user","content":"a"}]}`, `{"model":"sim/demo","messages":[]}`} {
		if res, got := f.do("POST", "/v1/messages/count_tokens", body); res.StatusCode != 400 || !strings.Contains(got, `"invalid_request_error"`) {
			t.Errorf("%s: %d %s", body, res.StatusCode, got)
		}
	}
}
