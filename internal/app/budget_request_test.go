package app

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/store"
)

// A request that is sent to the model server as the client wrote it is reserved with all that it asks for, whatever form the client
// gives it.
func TestBudgetsReadRequestsThatAreRelayed(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]int{
		`"max_tokens":100`:                                                             200,
		`"max_tokens":100,"n":4`:                                                       200,
		`"max_tokens":100,"n":6`:                                                       429, // 0.1 each, of 0.5
		`"max_tokens":100,"\u006e":6`:                                                  429,
		`"max_completion_tokens":1,"max_tokens":600`:                                   429,
		`"max_tokens":600,"max_completion_tokens":1`:                                   429,
		`"max_tokens":1,"n_predict":-1`:                                                400,
		`"max_tokens":1,"n_predict":0`:                                                 400,
		`"max_tokens":1,"n_predict":null`:                                              400,
		`"max_tokens":1,"n_predict":"many"`:                                            400,
		`"max_tokens":1,"thinking_budget":5000`:                                        429,
		`"max_tokens":1,"reasoning":{"max_tokens":5000}`:                               429,
		`"max_tokens":1,"thinking":{"budget_tokens":5000}`:                             429,
		`"max_tokens":100,"service_tier":"priority"`:                                   403,
		`"max_tokens":100,"service_tier":"default"`:                                    200,
		`"max_tokens":100,"modalities":["audio"]`:                                      403,
		`"max_tokens":100,"prediction":{"content":"` + strings.Repeat("x", 500) + `"}`: 429,
	} {
		s := serveBudgets(t, "tools: [], budget: {day: {cost: 0.5}}", "none", "")
		rec := s.do("app", http.MethodPost, "/v1/chat/completions", fmt.Sprintf(`{"model":"paid","messages":[{"role":"user","content":"hi"}],%s}`, body))
		calls := int64(0)
		if want == 200 {
			calls = 1
			if sent := *s.model.body.Load(); !strings.Contains(sent, body) {
				t.Errorf("%s: the request was not relayed, but %s", body, sent)
			}
		}
		if rec.Code != want || s.model.calls.Load() != calls {
			t.Errorf("%s: %d after %d calls, want %d: %s", body, rec.Code, s.model.calls.Load(), want, rec.Body)
		}
		if want == 400 && !strings.Contains(rec.Body.String(), "n_predict must be a number above 0 under a budget") {
			t.Errorf("%s: %s", body, rec.Body)
		}
		s.wantSpent(store.AccountKey, "app", "2026-11-29", 10*calls)
	}
}
