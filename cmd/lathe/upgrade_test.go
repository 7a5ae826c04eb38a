//go:build unix

package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lathe-run/lathe/internal/testkit/pgtest"
)

// upgradeFiles is the configuration under which the stores in testdata/upgrade were written, but for the port of the
// tools' server and for the store.
var upgradeFiles = map[string]string{
	"ask.script":  "-- turn --\ntext: I will send it.\ncall: send_mail {\"to\":\"ann@example.com\"}\n-- turn --\ntext: The mail is sent.\n",
	"hang.script": "-- turn --\ncall: slow_write {\"id\":\"w1\"}\ncall: slow_read {\"id\":\"r1\"}\n-- turn --\ntext: Both are done.\n",
	"read.script": "-- turn --\ncall: slow_read {\"id\":\"r2\"}\n-- turn --\ntext: It is read.\n",
	"done.script": "-- turn --\ncall: calculator {\"expression\":\"6*7\"}\n-- turn --\ntext: It is 42.\n",
	"fail.script": "-- turn --\ncall: note {\"id\":\"n1\"}\n-- turn --\nerror: 500 boom\n",
	"lathe.yaml": `serve: {addr: "127.0.0.1:0", store: "STORE"}
default_model: done
sim: {scripts: {ask: ask.script, hang: hang.script, read: read.script, done: done.script, fail: fail.script}}
models:
  ask: {provider: sim, model: sim/script-ask}
  hang: {provider: sim, model: sim/script-hang}
  read: {provider: sim, model: sim/script-read}
  done: {provider: sim, model: sim/script-done}
  fail: {provider: sim, model: sim/script-fail, max_attempts: 1}
tool_calling: {approval_ttl: 876000h, run_timeout: 876000h}
tools:
  builtin: [calculator]
  egress: {private: ["127.0.0.1"]}
  http:
    send_mail: {description: Sends a mail., method: POST, url: "TOOLS/mail", parameters: {to: {in: body, required: true}}, effect: writes, allowlist: ["*"]}
    slow_write: {description: Writes slowly., method: POST, url: "TOOLS/write", parameters: {id: {in: body, required: true}}, effect: writes, allowlist: ["*"]}
    slow_read: {description: Reads slowly., method: GET, url: "TOOLS/read", parameters: {id: {in: query, required: true}}, effect: read_only, allowlist: ["*"]}
    note: {description: Writes a note., method: POST, url: "TOOLS/note", parameters: {id: {in: body, required: true}}, effect: writes, allowlist: ["*"]}
policy: {tools: {send_mail: ask, slow_write: allow, note: allow}}
`,
}

// The stores of the first edition open: a run that waits is approved and acts once, runs whose process was killed are
// resumed without repeating what writes, and runs that had ended are as they were.
func TestStoresOfTheFirstEditionResume(t *testing.T) {
	t.Parallel()
	read := func(t *testing.T, name string) string {
		text, err := os.ReadFile(filepath.Join("testdata", "upgrade", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "runs.db")
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), read(t, "sqlite.sql")); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		checkUpgrade(t, "sqlite:"+path)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		url := pgtest.URL(t)
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), read(t, "postgres.sql")); err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Fatal(err)
		}
		checkUpgrade(t, url)
	})
}

func checkUpgrade(t *testing.T, store string) {
	t.Helper()
	var mu sync.Mutex
	calls := map[string]int{}
	tools := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		calls[r.URL.Path]++
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"ok":true}`)
	}))
	t.Cleanup(tools.Close)
	dir := t.TempDir()
	for name, text := range upgradeFiles {
		text = strings.ReplaceAll(strings.ReplaceAll(text, "TOOLS", tools.URL), "STORE", store)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	base := strings.TrimSuffix(startProc(t, dir, "serve").awaitLine(`http://\S+/v1`), "/v1")
	runs := listRuns(t, base)
	if len(runs) != 7 {
		t.Fatalf("%d runs, want 7: %+v", len(runs), runs)
	}
	for _, r := range runs {
		switch r.Model {
		case "sim/script-done":
			r.endsAs(t, base, "completed", "answered", "It is 42.")
		case "sim/script-fail":
			r.endsAs(t, base, "failed", "upstream_error", "")
		case "sim/script-hang":
			r.endsAs(t, base, "completed", "answered", "Both are done.")
		case "sim/script-read":
			r.endsAs(t, base, "completed", "answered", "It is read.")
		case "sim/script-ask":
			r.approve(t, base)
			r.endsAs(t, base, "completed", "answered", "The mail is sent.")
		default:
			t.Errorf("a run of the model %s", r.Model)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if calls["/mail"] != 2 || calls["/write"] != 0 || calls["/read"] != 2 || calls["/note"] != 0 {
		t.Errorf("calls by tool: %v, want 2 mails for 2 approvals, 2 reads, and no write that was interrupted or done before", calls)
	}
}

// A storedRun is a run as GET /api/runs and GET /api/runs/{id} show it.
type storedRun struct {
	ID        string `json:"run_id"`
	Model     string `json:"model"`
	Status    string `json:"status"`
	Reason    string `json:"reason"`
	Answer    string `json:"answer"`
	OpenCalls []struct {
		ToolCallID string `json:"tool_call_id"`
		Digest     string `json:"args_digest"`
	} `json:"open_calls"`
}

func listRuns(t *testing.T, base string) []storedRun {
	t.Helper()
	var page struct {
		Data []storedRun `json:"data"`
	}
	getJSON(t, base+"/api/runs", &page)
	return page.Data
}

// endsAs waits until the run is terminal, and checks how it ended.
func (r storedRun) endsAs(t *testing.T, base, status, reason, answer string) {
	t.Helper()
	events, err := http.Get(base + "/api/runs/" + r.ID + "/events") // the stream ends with the run
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	_, err = text.ReadFrom(events.Body)
	_ = events.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	var now storedRun
	getJSON(t, base+"/api/runs/"+r.ID, &now)
	if now.Status != status || now.Reason != reason || !strings.HasSuffix(now.Answer, answer) {
		t.Errorf("run %s of %s: %s, %s, %q, want %s, %s, %q", r.ID, r.Model, now.Status, now.Reason, now.Answer, status, reason, answer)
	}
}

// approve approves the one call that the run waits for.
func (r storedRun) approve(t *testing.T, base string) {
	t.Helper()
	var now storedRun
	getJSON(t, base+"/api/runs/"+r.ID, &now)
	if now.Status != "parked" || len(now.OpenCalls) != 1 {
		t.Fatalf("run %s: %s with %d approvals, want parked with one", r.ID, now.Status, len(now.OpenCalls))
	}
	body, err := json.Marshal(map[string]string{"decision": "approve", "digest": now.OpenCalls[0].Digest})
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.Post(base+"/api/runs/"+r.ID+"/approvals/"+now.OpenCalls[0].ToolCallID, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode/100 != 2 {
		t.Fatalf("the approval was answered %s", res.Status)
	}
}

func getJSON(t *testing.T, url string, into any) {
	t.Helper()
	client := http.Client{Timeout: 30 * time.Second}
	res, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(into); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, res.Status, err)
	}
}
