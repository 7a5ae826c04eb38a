package outside

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/app"
	"github.com/lathe-run/lathe/secret"
)

func TestConfigurationIsServedWithAToolOfTheProgram(t *testing.T) {
	cfg, err := app.LoadConfig("", &app.LoadOptions{Environ: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	w, err := Weather(weatherServer(t), secret.New("key-of-the-weather"))
	if err != nil {
		t.Fatal(err)
	}
	a, err := app.New(cfg, &app.Options{Tools: []lathe.Tool{w}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if left := a.Shutdown(t.Context()); left != 0 {
			t.Errorf("%d runs are left", left)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}()
	rec := httptest.NewRecorder()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/v1/chat/completions",
		strings.NewReader(`{"model":"sim/demo","messages":[{"role":"user","content":"What is the weather in Oslo?"}]}`))
	req.Header.Set("Content-Type", "application/json")
	a.Handler().ServeHTTP(rec, req)
	if !strings.Contains(rec.Body.String(), "21") || strings.Contains(rec.Body.String(), "internal-7") {
		t.Errorf("the answer is %s", rec.Body)
	}
}
