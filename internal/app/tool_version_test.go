package app

import (
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/server"
)

// The policy of the disabled tools has a new version when other tools are disabled, and only then.
func TestDisabledToolsHaveAVersion(t *testing.T) {
	t.Parallel()
	s := &toolSwitches{}
	s.now.Store(&disabledTools{})
	p := *s.policy()
	last, ok := policy.ToolVersion(p)
	if !ok {
		t.Fatal("there is no version")
	}
	for _, tt := range []struct {
		tool    string
		off     *server.DisabledTool
		changes bool
	}{
		{"a", &server.DisabledTool{Reason: "x"}, true},
		{"a", &server.DisabledTool{Reason: "y"}, false},
		{"b", &server.DisabledTool{}, true},
		{"a", nil, true},
		{"a", nil, false},
		{"b", nil, true},
	} {
		if err := s.Switch(t.Context(), tt.tool, tt.off, "ann"); err != nil {
			t.Fatal(err)
		}
		version, _ := policy.ToolVersion(p)
		if version < last || (version > last) != tt.changes {
			t.Errorf("%s %v: version %d after %d, want a change: %t", tt.tool, tt.off, version, last, tt.changes)
		}
		last = version
		if denied := p.Tool(nil, &lathe.ToolSpec{Name: tt.tool}).Decision == lathe.Deny; denied != (tt.off != nil) {
			t.Errorf("%s is denied: %t", tt.tool, denied)
		}
	}
}

// Without rules about principals the policy of a configuration has a version, so that runs need not ask it about each tool.
func TestPolicyOfAConfigurationHasAVersion(t *testing.T) {
	t.Parallel()
	s := &toolSwitches{}
	s.now.Store(&disabledTools{})
	opts, err := RunnerOptions(loadText(t, "policy: {tools: {calculator: deny}, effects: {writes: allow}}\n"), &CallOptions{disabled: s.policy()})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := policy.ToolVersion(opts.Policy); !ok {
		t.Error("there is no version")
	}
}
