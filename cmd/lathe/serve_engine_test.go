package main

import (
	"strings"
	"testing"
)

// The error for an engine of another program names that program, and does not repeat the URL, which may contain a password.
func TestServeDoesNotPrintEngineURL(t *testing.T) {
	t.Parallel()
	var out, errw strings.Builder
	code := run(t.Context(), []string{"serve", "--engine", "temporal://ann:secret@127.0.0.1:7233/default"}, strings.NewReader(""), &out, &errw)
	if text := out.String() + errw.String(); code != exitUsage || !strings.Contains(text, "lathe-temporal") || strings.Contains(text, "secret") {
		t.Errorf("exit code %d: %s", code, text)
	}
}
