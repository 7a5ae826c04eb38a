package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
)

func TestEngineURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]target{
		"temporal://127.0.0.1:7233/default":                        {address: "127.0.0.1:7233", namespace: "default", queue: "lathe"},
		"temporal://[::1]:7233/agents.prod?queue=gateway&tls=true": {address: "[::1]:7233", namespace: "agents.prod", queue: "gateway", tls: true},
		"temporal://temporal.example.com:443/agents?tls=false":     {address: "temporal.example.com:443", namespace: "agents", queue: "lathe"},
	} {
		if got, err := parseEngine(text); err != nil || *got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"":                              "is required",
		"http://127.0.0.1:7233/default": "want temporal://",
		"temporal://ann:secret@127.0.0.1:7233/default":  "without a user",
		"temporal://127.0.0.1/default":                  "no host and port",
		"temporal://127.0.0.1:7233":                     "name of a namespace",
		"temporal://127.0.0.1:7233/a/b":                 "name of a namespace",
		"temporal://127.0.0.1:7233/a?queue=":            "queue=NAME",
		"temporal://127.0.0.1:7233/a?tls=yes":           "tls=true",
		"temporal://127.0.0.1:7233/a?zone=x":            `unknown parameter "zone"`,
		"temporal://127.0.0.1:7233/a?tls=true&tls=true": "given twice",
		"temporal://127.0.0.1:7233/a?queue=b;tls=true":  "with & between them",
		"temporal://127.0.0.1:7233/a?tls=true&queue=%z": "with & between them",
	} {
		_, err := parseEngine(text)
		if lathe.CodeOf(err) != lathe.CodeInvalidRequest || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// The program says what is wrong, and its exit codes are those of lathe.
func TestRunRefuses(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv(certVariable, "cert.pem")
	bad := filepath.Join(dir, "bad.yaml")
	if err := os.WriteFile(bad, []byte("nonsense: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args string
		code int
		want string
	}{
		{"", exitUsage, "the commands are serve and version"},
		{"run", exitUsage, "all other commands are those of lathe"},
		{"serve", exitUsage, "--engine is required"},
		{"serve --engin x", exitUsage, "unknown flag"},
		{"serve --engine temporal://127.0.0.1:1/default --config none.yaml", exitConfig, "none.yaml"},
		{"serve --engine temporal://127.0.0.1:1/default --config bad.yaml", exitConfig, "nonsense"},
		{"serve --engine temporal://127.0.0.1:1/default", exitUsage, keyVariable},
		{"version", 0, program},
		{"serve --help", 0, "--engine"},
		{"serve --help", 0, "a store that outlives the process"},
	} {
		var out, errw bytes.Buffer
		if code := run(t.Context(), strings.Fields(tt.args), &out, &errw); code != tt.code || !strings.Contains(out.String()+errw.String(), tt.want) {
			t.Errorf("%s: exit code %d, want %d and %q; it says %s%s", tt.args, code, tt.code, tt.want, out.String(), errw.String())
		}
	}
	t.Setenv(certVariable, "")
	var out, errw bytes.Buffer
	if code := run(t.Context(), []string{"serve", "--engine", "temporal://127.0.0.1:1/default"}, &out, &errw); code != exitUpstream || !strings.Contains(errw.String(), "the Temporal server at 127.0.0.1:1") {
		t.Errorf("without a server: exit code %d: %s", code, errw.String())
	}
}
