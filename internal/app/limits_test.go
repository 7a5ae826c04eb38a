package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/setting/limittest"
	"github.com/lathe-run/lathe/loop"
)

// Each limit is obeyed whether a flag, a variable or the file has it.
func TestEachLimitOfAConfigurationIsObeyed(t *testing.T) {
	t.Parallel()
	limittest.Each(t, func(t *testing.T, s *limittest.Scenario) {
		t.Parallel()
		key := "tool_calling." + s.Key
		var flag string
		for _, set := range config.RunSettings() {
			if set.Key == key {
				flag = set.Flag
			}
		}
		for name, load := range map[string]func() (*config.Config, error){
			"a flag": func() (*config.Config, error) {
				return config.Load("", &config.LoadOptions{Overrides: []config.Override{{From: "--" + flag, Key: key, Value: s.Text}}})
			},
			"a variable": func() (*config.Config, error) {
				return config.Load("", &config.LoadOptions{Environ: []string{"LATHE_TOOL_CALLING_" + strings.ToUpper(s.Key) + "=" + s.Text}})
			},
			"the file": func() (*config.Config, error) {
				path := filepath.Join(t.TempDir(), "lathe.yaml")
				if err := os.WriteFile(path, []byte("tool_calling: {"+s.Key+": "+s.Text+"}"), 0o600); err != nil {
					return nil, err
				}
				return config.Load(path, &config.LoadOptions{})
			},
		} {
			cfg, err := load()
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			runner, err := app.NewRunner(cfg, limittest.Set(t), &app.CallOptions{Approver: limittest.Approver{}})
			if err != nil {
				t.Fatal(err)
			}
			entry, err := cfg.Model("")
			if err != nil {
				t.Fatal(err)
			}
			l, err := app.NewLoop(cfg, entry, s.Model(t), runner)
			if err != nil {
				if s.Key != "max_tools" && s.Key != "max_tools_bytes" {
					t.Fatal(err)
				}
				continue // refused before a run
			}
			var events []event.Event
			for e := range l.Run(t.Context(), &loop.Input{Run: lathe.RunInfo{RunID: "run_1"}, Messages: []lathe.Message{lathe.User("go")}}) {
				events = append(events, e)
			}
			if !s.Met(events) {
				t.Errorf("%s: the limit was not met: %+v", name, events[len(events)-1].Data)
			}
		}
	})
}
