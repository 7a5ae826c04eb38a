package policy_test

import (
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/policy"
)

type (
	ownEffects struct{ policy.Effects }
	ownTools   struct{ policy.Tools }
	ownAll     struct{ lathe.Policy }
)

func TestToolVersion(t *testing.T) {
	t.Parallel()
	var version uint64 = 7
	counted := policy.Disabled{Is: func(string) bool { return false }, Version: func() uint64 { return version }}
	type is struct {
		version uint64
		ok      bool
	}
	for name, tt := range map[string]struct {
		policy lathe.Policy
		want   is
	}{
		"none":                   {nil, is{}},
		"allow all":              {policy.AllowAll(), is{0, true}},
		"effects":                {policy.Default(), is{0, true}},
		"trifecta":               {policy.Trifecta{}, is{0, true}},
		"taint":                  {policy.Taint{}, is{0, true}},
		"budget":                 {policy.Budget{}, is{0, true}},
		"tools":                  {policy.Tools{}, is{0, true}},
		"tools, else":            {policy.Tools{Else: counted}, is{7, true}},
		"tools, else unknown":    {policy.Tools{Else: ownEffects{}}, is{}},
		"disabled":               {counted, is{7, true}},
		"disabled, no version":   {policy.Disabled{Is: counted.Is}, is{}},
		"all":                    {policy.All(policy.Default(), nil, counted, policy.All(counted)), is{14, true}},
		"all of nothing":         {policy.All(), is{0, true}},
		"all, one unknown":       {policy.All(policy.Default(), ownEffects{}), is{}},
		"embedded effects":       {ownEffects{}, is{}},
		"pointer to it":          {&ownEffects{}, is{}},
		"embedded tools":         {ownTools{policy.Tools{Else: policy.Default()}}, is{}},
		"an All in an interface": {ownAll{policy.All()}, is{}},
	} {
		if version, ok := policy.ToolVersion(tt.policy); (is{version, ok}) != tt.want {
			t.Errorf("%s: %d, %t, want %v", name, version, ok, tt.want)
		}
	}
}
