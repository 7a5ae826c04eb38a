package uistream

import "testing"

func TestForwardedPropsNameTheModel(t *testing.T) {
	t.Parallel()
	for body, want := range map[string][2]string{
		`{"threadId":"t","runId":"r","messages":[{"id":"m","role":"user","content":"x"}],"forwardedProps":{"model":"b","lathe":{"mode":"enforced"}}}`:                 {"b", `{"mode":"enforced"}`},
		`{"threadId":"t","runId":"r","model":"a","lathe":{},"messages":[{"id":"m","role":"user","content":"x"}],"forwardedProps":{"model":"b","lathe":{"tools":[]}}}`: {"a", `{}`},
		`{"threadId":"t","runId":"r","messages":[{"id":"m","role":"user","content":"x"}],"forwardedProps":"none"}`:                                                    {"", ""},
	} {
		req, err := ParseRequest([]byte(body), nil)
		if err != nil || req.Model != want[0] || string(req.Lathe) != want[1] {
			t.Errorf("%s: %+v, %v", body, req, err)
		}
	}
}
