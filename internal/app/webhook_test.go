package app_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/config"
)

const webhookKey = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

const badSecret = "a-secret-of-another-form"

// loadWebhook loads a configuration with the secrets ${HOOK} and ${BAD}.
func loadWebhook(t *testing.T, yaml string) *config.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lathe.yaml")
	if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := app.LoadConfig(path, &app.LoadOptions{Environ: []string{"HOOK=whsec_" + webhookKey, "BAD=" + badSecret}})
	if err != nil {
		t.Fatal(yaml, err)
	}
	return cfg
}

// The endpoint gets one signed request without arguments for a call that waits for an approval.
func TestWebhookGetsWaitingCall(t *testing.T) {
	t.Parallel()
	type request struct {
		header http.Header
		body   string
	}
	got := make(chan request, 10)
	endpoint := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got <- request{r.Header, string(b)}
	}))
	t.Cleanup(endpoint.Close)
	a, err := app.New(loadWebhook(t, "tools: {builtin: [calculator], egress: {private: [127.0.0.1]}}\npolicy: {tools: {calculator: ask}}\n"+
		"approval: {webhook: {url: '"+endpoint.URL+"', secret: '${HOOK}', page: 'https://lathe.example.com/'}}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	status, body := call(t, a.Handler(), "", "POST", "/api/runs", `{"model":"sim/demo","prompt":"What is 7 + 35?"}`)
	var run struct {
		ID string `json:"run_id"`
	}
	if err := json.Unmarshal([]byte(body), &run); err != nil || run.ID == "" {
		t.Fatal(status, body, err)
	}
	var one request
	select {
	case one = <-got:
	case <-time.After(time.Minute):
		t.Fatal("no request came")
	}
	for _, want := range []string{`"type":"approval.requested"`, `"run_id":"` + run.ID + `"`, `"tool":"calculator"`, `"url":"https://lathe.example.com/runs/` + run.ID + `"`} {
		if !strings.Contains(one.body, want) {
			t.Errorf("%s has no %s", one.body, want)
		}
	}
	if strings.Contains(one.body, "7 + 35") {
		t.Errorf("the notice has arguments: %s", one.body)
	}
	key, _ := base64.StdEncoding.DecodeString(webhookKey)
	mac := hmac.New(sha256.New, key)
	_, _ = io.WriteString(mac, one.header.Get("Webhook-Id")+"."+one.header.Get("Webhook-Timestamp")+"."+one.body)
	if sig := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); one.header.Get("Webhook-Signature") != sig {
		t.Errorf("signature %q, want %q", one.header.Get("Webhook-Signature"), sig)
	}
}

func TestWebhooksThatAreRefused(t *testing.T) {
	t.Parallel()
	for yaml, want := range map[string]string{
		"url: 'https://127.0.0.1/x', secret: '${HOOK}'":  "approval.webhook.url: the address is not public: name its host in tools.egress.private",
		"url: 'https://example.com/x', secret: '${BAD}'": "approval.webhook.secret: the secret of a webhook is whsec_ and 24 to 64 random bytes",
		"url: 'https://example.com/x'":                   "approval.webhook.secret: the secret of a webhook is whsec_ and 24 to 64 random bytes",
		"secret: '${HOOK}'":                              "approval.webhook.url: no address",
	} {
		err := app.Check(t.Context(), loadWebhook(t, "approval: {webhook: {"+yaml+"}}\n"))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), badSecret) {
			t.Errorf("%s: %v, want %s", yaml, err, want)
		}
	}
}
