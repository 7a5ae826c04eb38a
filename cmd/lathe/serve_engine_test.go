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

// An error of the gateway is printed as it is, without the package and the code that it has inside.
func TestServePrintsCause(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"0.0.0.0:0":       "\nlathe: 0.0.0.0 can be reached by others",
		"127.0.0.1:99999": "\nlathe: cannot listen on 127.0.0.1:99999",
	} {
		var out, errw strings.Builder
		if code := run(t.Context(), []string{"serve", "--addr", addr}, strings.NewReader(""), &out, &errw); code == 0 || !strings.Contains(errw.String(), want) {
			t.Errorf("%s: exit code %d: %s", addr, code, errw.String())
		}
	}
}
