package app

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/tool"
)

// A call of an MCP client keeps the tools that it began with when a reload puts others in force.
func TestReloadLeavesCallsOfMCPClients(t *testing.T) {
	t.Parallel()
	begun, release := make(chan struct{}), make(chan struct{})
	waits := tool.Func("waits", "Waits.", func(ctx context.Context, _ struct{}) (string, error) {
		close(begun)
		select {
		case <-release:
			return "ready", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}, &tool.FuncOptions{Effect: lathe.ReadOnly, Show: []string{"*"}})
	with := func(tools ...lathe.Tool) *revision {
		set, err := tool.NewSet(tools...)
		if err != nil {
			t.Fatal(err)
		}
		cfg := config.Default()
		runner, err := NewRunner(cfg, set, nil)
		if err != nil {
			t.Fatal(err)
		}
		return &revision{cfg: cfg, unattended: runner, catalog: &Catalog{}}
	}
	a := &App{log: slog.New(slog.DiscardHandler)}
	a.offerTools(with(waits))
	defer a.mcp.Close()
	srv := httptest.NewServer(http.HandlerFunc(a.serveMCP))
	defer srv.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	call := func() string {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"waits","arguments":{},`+
			`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`))
		if err != nil {
			return err.Error()
		}
		for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "waits"} {
			req.Header.Set(name, value)
		}
		res, err := transport.RoundTrip(req)
		if err != nil {
			return err.Error()
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			return err.Error()
		}
		return string(b)
	}
	got := make(chan string, 1)
	go func() { got <- call() }()
	<-begun
	unused := a.offerTools(with())
	select {
	case <-unused:
		t.Error("the tools of a call at work may be closed")
	default:
	}
	if answer := call(); !strings.Contains(answer, "unknown tool") {
		t.Errorf("the next call gets %s", answer)
	}
	close(release)
	if answer := <-got; !strings.Contains(answer, "ready") {
		t.Errorf("the call at work gets %s", answer)
	}
	<-unused
}
