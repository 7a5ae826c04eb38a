package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/wire/openai"
	"github.com/lathe-run/lathe/internal/wire/wiretest"
	"github.com/lathe-run/lathe/sim"
)

// TestInitTakesTheOnlyModel: without --model, and without a terminal to ask on, the file is for the only model of the server; a
// server with several is refused with their names, and nothing is asked with --no-check.
func TestInitTakesTheOnlyModel(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		list, flag string
		code       int
		want       string
	}{
		"one":      {`{"data":[{"id":"only"}]}`, "", exitOK, `default_model: "only"`},
		"several":  {`{"data":[{"id":"one"},{"id":"two"}]}`, "", exitUsage, "--base-url needs --model: one, two"},
		"none":     {`{"data":[]}`, "", exitUsage, "--base-url needs --model: the name of a model"},
		"no check": {`{"data":[{"id":"only"}]}`, "--no-check", exitUsage, "--base-url needs --model: the name of a model"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := wiretest.Handler(openai.Served{}, sim.New(nil).Model(sim.DemoModel), "", "")
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/v1/models" {
					_, _ = io.WriteString(w, tc.list)
					return
				}
				model.ServeHTTP(w, r)
			}))
			t.Cleanup(srv.Close)
			args := []string{"init", "--print", "--base-url", srv.URL + "/v1"}
			if tc.flag != "" {
				args = append(args, tc.flag)
			}
			var out, errs strings.Builder
			code := run(t.Context(), args, strings.NewReader(""), &out, &errs)
			if code != tc.code || !strings.Contains(out.String()+errs.String(), tc.want) {
				t.Errorf("exit code %d, %s%s, want %d and %q", code, out.String(), errs.String(), tc.code, tc.want)
			}
		})
	}
}
