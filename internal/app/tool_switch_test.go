package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/store"
)

const switchYAML = "tools: {builtin: [calculator, get_current_time]}\n"

// disabled reports whether the tool is shown as disabled and its calls are denied.
func disabled(t *testing.T, a *app.App, tool string) bool {
	t.Helper()
	_, shown := call(t, a.Handler(), "", "GET", "/api/tools/"+tool, "")
	status, body := call(t, a.Handler(), "", "POST", "/api/tools/"+tool+"/call", map[string]string{"calculator": `{"arguments":{"expression":"1"}}`, "get_current_time": "{}"}[tool])
	off := strings.Contains(shown, `"disabled":{`)
	if denied := status == 403 && strings.Contains(body, "policy_denied"); denied != off {
		t.Errorf("%s is shown as disabled: %t; its call: %d %s", tool, off, status, body)
	}
	return off
}

// A disabled tool is disabled after a restart and after a reload, and the audit log says who disabled it.
func TestDisabledToolsOutliveTheProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	yaml := switchYAML + "serve: {store: 'sqlite:" + filepath.ToSlash(dir) + "/runs.db'}\naudit: {path: '" + filepath.ToSlash(dir) + "/audit.jsonl'}\n"
	a := open(t, yaml, nil)
	if status, body := call(t, a.Handler(), "", "POST", "/api/tools/get_current_time/disable", `{"reason":"wrong zone"}`); status != 200 {
		t.Fatal(status, body)
	}
	if !disabled(t, a, "get_current_time") || disabled(t, a, "calculator") {
		t.Error("not the tool that was named")
	}
	if _, body := call(t, a.Handler(), "", "POST", "/api/policy/explain", `{"tool":"get_current_time"}`); !strings.Contains(body, `"decision":"deny","rule":"disabled"`) {
		t.Errorf("the policy explains %s", body)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(dir, "audit.jsonl"))
	if err != nil || !strings.Contains(string(log), `"kind":"changed","changed":{"change":"tool_disabled","tool":"get_current_time","by":"`) {
		t.Errorf("%v %s", err, log)
	}
	b := open(t, yaml, nil)
	if !disabled(t, b, "get_current_time") {
		t.Error("the tool is enabled after a restart")
	}
	if _, body := call(t, b.Handler(), "", "GET", "/api/audit", ""); !strings.Contains(body, `"type":"tool_disabled"`) {
		t.Errorf("the page shows %s", body)
	}
	if status, body := call(t, b.Handler(), "", "POST", "/api/tools/get_current_time/enable", ""); status != 200 || disabled(t, b, "get_current_time") {
		t.Error(status, body)
	}
}

// A sharedStore is one that several processes use.
type sharedStore struct{ *store.Memory }

func (sharedStore) Close() error { return nil }

func TestDisabledToolsAreThoseOfAllProcessesOnAStore(t *testing.T) {
	t.Parallel()
	kept := sharedStore{store.NewMemory(nil)}
	a, b := open(t, switchYAML, &app.Options{Store: kept}), open(t, switchYAML, &app.Options{Store: kept})
	if status, body := call(t, a.Handler(), "", "POST", "/api/tools/calculator/disable", ""); status != 200 {
		t.Fatal(status, body)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, shown := call(t, b.Handler(), "", "GET", "/api/tools/calculator", ""); strings.Contains(shown, `"disabled":{`) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the other process has the tool a minute later")
		}
	}
	if !disabled(t, b, "calculator") {
		t.Error("its calls are not denied")
	}
}
