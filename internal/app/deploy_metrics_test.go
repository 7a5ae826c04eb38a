package app_test

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
)

// Each metric that the dashboard and the alert rules name exists after a run, and docs/operating.md has a section for each
// alert.
func TestDashboardAndAlertsNameMetricsThatExist(t *testing.T) {
	t.Parallel()
	a := open(t, "", nil)
	if status, text := askApp(t, a, "POST", "/v1/chat/completions", "", `{"model":"sim/demo","messages":[{"role":"user","content":"What is 7 + 35?"}]}`); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	w := httptest.NewRecorder()
	a.MetricsHandler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	scraped := w.Body.String()
	for _, series := range []string{`lathe_model_requests_total{key="none",model="sim/demo",status="success"} 2`, `lathe_model_call_duration_seconds_count{key="none",model="sim/demo"} 2`,
		`lathe_http_request_duration_seconds_count{route="POST /v1/chat/completions"} 1`, `lathe_tool_call_duration_seconds_count{tool="calculator"} 1`,
		`lathe_http_first_byte_seconds_count{route="POST /v1/chat/completions"} 1`, `gen_ai_invoke_agent_duration_seconds_count{error_type=""} 1`,
		`gen_ai_execute_tool_duration_seconds_count{error_type="",gen_ai_tool_name="calculator",gen_ai_tool_type="extension"} 1`} {
		if !strings.Contains(scraped, "\n"+series+"\n") {
			t.Errorf("the run did not make %s", series)
		}
	}
	name := regexp.MustCompile(`\b(?:lathe|tool|gen_ai|harmony|process|go)_[a-z_]+`)
	labels := regexp.MustCompile(`\{[^{}]*\}`)
	by := regexp.MustCompile(`\bby \([^)]*\)`)
	read := func(path string) string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	dashboard, rules := read("../../deploy/grafana/lathe.json"), read("../../deploy/prometheus/alerts.yml")
	var parsed struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(dashboard), &parsed); err != nil {
		t.Fatal(err)
	}
	exprs := map[string]string{}
	for _, p := range parsed.Panels {
		for _, target := range p.Targets {
			exprs[target.Expr] = p.Title
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^ *expr: (.*)$`).FindAllStringSubmatch(rules, -1) {
		exprs[m[1]] = "an alert"
	}
	found := 0
	for expr, where := range exprs {
		for _, metric := range name.FindAllString(by.ReplaceAllString(labels.ReplaceAllString(expr, ""), ""), -1) {
			found++
			if !strings.Contains(scraped, "\n"+metric+"{") && !strings.Contains(scraped, "\n"+metric+" ") {
				t.Errorf("%s names %s, which a run does not make", where, metric)
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d names were found", found)
	}
	operating := read("../../docs/operating.md")
	alerts := regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(rules, -1)
	for _, m := range alerts {
		if !strings.Contains(operating, "\n### "+m[1]+"\n") || !strings.Contains(rules, "operating.md#"+strings.ToLower(m[1])+"\n") {
			t.Errorf("docs/operating.md has no section for %s, or the alert does not name it", m[1])
		}
	}
	if len(alerts) != 8 {
		t.Errorf("%d alerts", len(alerts))
	}
}
