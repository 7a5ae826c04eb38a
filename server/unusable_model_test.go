package server_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/server"
)

type unusableModel struct{}

func (unusableModel) Names() []string { return []string{"m"} }
func (unusableModel) Model(string) (*server.Model, error) {
	return nil, errors.New("202 tools, and tool_calling.max_tools is 128")
}

func TestAModelThatCannotBeMadeIsLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	g, err := server.New(&server.Options{Setup: server.Setup{Models: unusableModel{}}, Engine: newEngine(t, &engine.Options{Log: logger}), Log: logger})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(ask("m", "Say something.", "")))
	r.Host, r.RemoteAddr = "127.0.0.1:8700", "127.0.0.1:1024"
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	if w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "max_tools") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if !strings.Contains(log.String(), "tool_calling.max_tools is 128") {
		t.Errorf("the log has no cause: %s", log.String())
	}
}
