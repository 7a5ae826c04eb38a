package app_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/app"
)

// OTEL_SEMCONV_STABILITY_OPT_IN is a list, of which only the member about generative AI counts.
func TestConventionsAreChosenByTheEnvironment(t *testing.T) {
	t.Parallel()
	for value, want := range map[string][2]bool{"": {true, false}, "http,database/dup": {true, false}, "http, gen_ai_latest_experimental": {false, true}, "gen_ai_latest_experimental/dup": {true, true}} {
		a := open(t, "", &app.Options{Environ: []string{"OTEL_SEMCONV_STABILITY_OPT_IN=" + value}})
		w := httptest.NewRecorder()
		a.MetricsHandler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		for i, name := range []string{"gen_ai_client_token_usage_count{", "gen_ai_client_inference_usage_input_tokens_total{"} {
			if got := strings.Contains(w.Body.String(), "\n"+name); got != want[i] {
				t.Errorf("%q: %s is there: %t", value, name, got)
			}
		}
	}
}
