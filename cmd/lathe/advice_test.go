package main

import (
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/lathe-run/lathe"
)

// A command that a gateway serves says so if another program answers at its address, whatever that answers, and where to look.
func TestOtherProgramInPlaceOfADaemonIsNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		args   string
		says   string
	}{
		{404, "runs list", "HTTP 404"},
		{200, "runs list", "invalid character '<'"},
		{501, "runs cancel run_1", "HTTP 501"},
		{200, "runs events run_1", `"text/html"`},
		{404, "usage", "HTTP 404"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(c.status)
			_, _ = fmt.Fprint(w, "<html>")
		}))
		var out, errw strings.Builder
		code := run(t.Context(), append(strings.Fields(c.args), "--server", server.URL), strings.NewReader(""), &out, &errw)
		server.Close()
		if got := errw.String(); code != exitFailed || !strings.Contains(got, server.URL+" does not answer like this version of lathe serve: ") || !strings.Contains(got, c.says) ||
			!strings.Contains(got, "--server (or LATHE_SERVER) must be the address") {
			t.Errorf("%s, HTTP %d: exit code %d, %s", c.args, c.status, code, got)
		}
	}
}

// Errors of the system have a next step.
func TestErrorsOfTheSystemHaveANextStep(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("the run ended internal: %w: (13)", lathe.ErrStoreFull), "free space"},
		{&fs.PathError{Op: "write", Path: "metrics.prom", Err: syscall.ENOSPC}, "free space"},
		{&fs.PathError{Op: "read", Path: "key", Err: syscall.EISDIR}, "name a file in that folder"},
		{fmt.Errorf("other"), ""},
	} {
		if got := advice(c.err, c.err.Error()); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
	var out, errw strings.Builder
	dir := t.TempDir()
	if code := run(t.Context(), []string{"--config", dir, "config", "check"}, strings.NewReader(""), &out, &errw); code != exitConfig ||
		!strings.Contains(errw.String(), dir+" is a folder: name the configuration file in it, such as "+filepath.Join(dir, "lathe.yaml")) {
		t.Errorf("exit code %d, %s", code, errw.String())
	}
}
