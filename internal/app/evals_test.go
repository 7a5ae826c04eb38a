package app_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/app"
)

const evalsYAML = `
keys:
  root: {key: "${file:DIR/root}", admin: true}
  ann: {key: "${file:DIR/ann}"}
serve: {evals: 'DIR/results'}
`

const evalSummary = `{"suite":"simple","status":"passed","measured":[{"model":"m","started":"TIME","trials":1}],
"models":[{"model":"m","runs":1,"errors":0,"ok":1,"ok_rate":1,"ok_rate_low":0.21,"ok_rate_high":1,"ms_p50":5,"ms_p95":6,"later":1}],"later":{"x":1}}`

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Admin keys see the results of the folder, and nothing outside of it.
func TestResultsOfEvaluations(t *testing.T) {
	t.Parallel()
	const root, ann = "ROOT-0123456789abcdef", "ANN-0123456789abcdef"
	dir := t.TempDir()
	run := `{"model":"m","scenario":"happy","trial":1,"ok":true,"scored":true,"provokes":true,"elapsed_ms":5,"history":[{"role":"user","parts":[]}],"trace":[],"fingerprint":"f"}`
	writeFiles(t, dir, map[string]string{
		"root": root, "ann": ann,
		"results/old/summary.json":               strings.Replace(evalSummary, "TIME", "2026-01-01T00:00:00Z", 1),
		"results/new/summary.json":               strings.Replace(evalSummary, "TIME", "2026-02-01T00:00:00Z", 1),
		"results/new/m__happy__trial_01.json":    run,
		"results/new/m__broken__trial_01.json":   `{`,
		"results/new/m__other__trial_01.json":    `{"model":""}`,
		"results/new/notes.json":                 `{"secret":"in the folder"}`,
		"results/bad/summary.json":               `[`,
		"results/none/notes.txt":                 "no result",
		"results/.hidden/summary.json":           evalSummary,
		"results/loose.json":                     run,
		"outside/summary.json":                   evalSummary,
		"outside/m__happy__trial_01.json":        run,
		"outside/secret__happy__trial_0001.json": run,
	})
	for from, to := range map[string]string{"link": "../outside", "new/x__link__trial_01.json": "../../outside/m__happy__trial_01.json"} {
		if err := os.Symlink(to, filepath.Join(dir, "results", from)); err != nil {
			t.Skip("no symbolic links here:", err)
		}
	}
	big, err := os.Create(filepath.Join(dir, "results", "new", "m__big__trial_01.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := big.Truncate(17 << 20); err != nil {
		t.Fatal(err)
	}
	if err := big.Close(); err != nil {
		t.Fatal(err)
	}
	a := open(t, strings.ReplaceAll(evalsYAML, "DIR", filepath.ToSlash(dir)), nil)
	h := a.Handler()

	status, body := call(t, h, root, "GET", "/api/evals", "")
	var list struct {
		Data []struct {
			ID, Suite, Status, Problem string
			Models                     []struct{ Model string }
		}
		Truncated bool
	}
	if err := json.Unmarshal([]byte(body), &list); err != nil || status != 200 || list.Truncated {
		t.Fatal(err, status, body)
	}
	var ids []string
	for _, r := range list.Data {
		ids = append(ids, r.ID+":"+r.Suite+":"+r.Problem)
	}
	if got, want := strings.Join(ids, " "), "new:simple: old:simple: bad::summary.json is not the summary of an evaluation"; got != want {
		t.Errorf("listed %q, want %q", got, want)
	}

	status, body = call(t, h, root, "GET", "/api/evals/new", "")
	var one struct {
		Summary map[string]json.RawMessage
		Runs    []struct {
			Name, Model string
			OK          bool
			Provokes    bool
		}
		Truncated bool
	}
	if err := json.Unmarshal([]byte(body), &one); err != nil || status != 200 {
		t.Fatal(err, status, body)
	}
	if one.Summary["later"] == nil || len(one.Runs) != 1 || one.Runs[0].Name != "m__happy__trial_01" || !one.Runs[0].OK || !one.Runs[0].Provokes || !one.Truncated {
		t.Errorf("%s", body)
	}
	if status, body := call(t, h, root, "GET", "/api/evals/new/runs/m__happy__trial_01", ""); status != 200 || strings.TrimSpace(body) != run {
		t.Error(status, body)
	}
	if status, body := call(t, h, root, "GET", "/api/evals/bad", ""); status != 200 || !strings.Contains(body, `"summary":null`) {
		t.Error(status, body)
	}
	for _, path := range []string{"/gone", "/link", "/..", "/%2e%2e", "/..%2foutside", "/.hidden", "/none", "/loose.json", "/new%2f..%2f..%2foutside", "/new%00", "/new/runs/notes",
		"/new/runs/x__link__trial_01", "/new/runs/m__big__trial_01", "/new/runs/m__broken__trial_01", "/link/runs/m__happy__trial_01", "/new/runs/..%2f..%2foutside%2fm__happy__trial_01",
		"/%2e%2e%2foutside/runs/m__happy__trial_01", "/new/runs/..%5c..%5coutside%5cm__happy__trial_01"} {
		status, body := call(t, h, root, "GET", "/api/evals"+path, "")
		if status != 404 && status != 301 && status != 307 || strings.Contains(body, "history") || strings.Contains(body, "simple") {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	for _, path := range []string{"", "/new", "/new/runs/m__happy__trial_01", "/gone"} {
		if status, body := call(t, h, ann, "GET", "/api/evals"+path, ""); status != 403 || !strings.Contains(body, "admin_required") {
			t.Errorf("%s of a key: %d %s", path, status, body)
		}
	}
	none := open(t, "{}", &app.Options{}).Handler()
	for _, path := range []string{"", "/new", "/new/runs/m__happy__trial_01"} {
		if status, body := call(t, none, "", "GET", "/api/evals"+path, ""); status != 404 || !strings.Contains(body, "no_evals") {
			t.Errorf("%s without serve.evals: %d %s", path, status, body)
		}
	}
}

// A folder that no evaluation has written to yet holds no results.
func TestNoResultsOfEvaluationsYet(t *testing.T) {
	t.Parallel()
	const root = "ROOT-0123456789abcdef"
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"root": root, "ann": "ANN-0123456789abcdef"})
	h := open(t, strings.ReplaceAll(evalsYAML, "DIR", filepath.ToSlash(dir)), nil).Handler()
	if status, body := call(t, h, root, "GET", "/api/evals", ""); status != 200 || strings.TrimSpace(body) != `{"data":[]}` {
		t.Errorf("the list is %d %s", status, body)
	}
	if status, body := call(t, h, root, "GET", "/api/evals/first", ""); status != 404 {
		t.Errorf("one result is %d %s", status, body)
	}
}
