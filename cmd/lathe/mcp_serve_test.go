package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// T10, T21: over HTTP the command serves who has the key and asks for this machine, and says nothing of the key.
func TestT10_MCPServeOverHTTP(t *testing.T) {
	t.Parallel()
	const key = "canary-key-0123456789"
	dir := t.TempDir()
	file, events := filepath.Join(dir, "key"), filepath.Join(dir, "events.jsonl")
	if err := os.WriteFile(file, []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, w := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"mcp", "serve", "--addr", "127.0.0.1:0", "--key-file", file, "--log", "debug", "--events", events}, strings.NewReader(""), io.Discard, w)
		_ = w.Close()
	}()
	lines := bufio.NewScanner(r)
	if !lines.Scan() {
		t.Fatal("it says nothing")
	}
	url := strings.Fields(strings.TrimPrefix(lines.Text(), "MCP is served on "))[0]
	output := make(chan string, 1)
	go func() {
		var all strings.Builder
		for lines.Scan() {
			all.WriteString(lines.Text())
		}
		output <- all.String()
	}()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	for _, tt := range []struct {
		key, host, want string
		status          int
	}{
		{key, "", `"structuredContent":{"result":42,"exact":true}`, 200},
		{key + "x", "", "a key is needed", 401},
		{"", "", "a key is needed", 401},
		{key, "evil.test", "this Host or Origin is not served here", 403},
	} {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"calculator","arguments":{"expression":"7 + 35"},`+
			`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = tt.host
		for name, value := range map[string]string{"Authorization": "Bearer " + tt.key, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "calculator"} {
			req.Header.Set(name, value)
		}
		res, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode != tt.status || !strings.Contains(string(b), tt.want) {
			t.Errorf("%v %d %s, want %d with %s", err, res.StatusCode, b, tt.status, tt.want)
		}
	}
	cancel()
	if got := <-code; got != exitOK {
		t.Errorf("exit code %d", got)
	}
	text := <-output
	kept, err := os.ReadFile(events)
	if err != nil || strings.Count(string(kept), `"type":"RunFinished"`) != 1 {
		t.Errorf("%v, %s", err, kept)
	}
	if !strings.Contains(text, "stopped") || strings.Contains(text+string(kept), "canary") || strings.Contains(text+string(kept), "7 + 35") {
		t.Errorf("it says %s", text)
	}
}
