package preset

import (
	_ "embed"
	"encoding/json"
	"strings"
	"sync"

	"github.com/lathe-run/lathe"
)

//go:embed table.json
var tableJSON []byte

type row struct {
	Name    string
	Purpose string // what the settings are for, in one sentence
	Patch   *Patch
}

// A registry is what table.json holds: the presets, the settings of providers and servers in addition to those that [For] adds, and other
// names of both, in folded form; see unknown.
type registry struct {
	Presets, Profiles []row
	OtherPresets      map[string]string `json:"other_presets"`
	OtherProfiles     map[string]string `json:"other_profiles"`
}

var known = sync.OnceValue(func() (r registry) {
	if err := json.Unmarshal(tableJSON, &r); err != nil {
		panic(err) // cannot happen: a test reads the file
	}
	return r
})

func find(rows []row, what, name string, others map[string]string) (*Patch, error) {
	names := make([]string, len(rows))
	for i := range rows {
		if rows[i].Name == name {
			return Merge(rows[i].Patch), nil
		}
		names[i] = rows[i].Name
	}
	return nil, lathe.CodeInvalidConfig.Wrap("preset", unknown(what, name, names, others))
}

// Named returns the preset with this name. The caller may change the patch. The error for an unknown name has the code invalid_config, and
// suggests the nearest name.
func Named(name string) (*Patch, error) {
	return find(known().Presets, "preset", name, known().OtherPresets)
}

// Profile returns the settings for the provider or server with this name, such as its base URL. The caller may change the patch. The error
// for an unknown name has the code invalid_config, and suggests the nearest name.
func Profile(name string) (*Patch, error) {
	return find(known().Profiles, "profile", name, known().OtherProfiles)
}

// own returns a preset that table.json has.
func own(name string) *Patch {
	p, err := Named(name)
	if err != nil {
		panic(err) // cannot happen: a test calls it with each name
	}
	return p
}

// providerDefaults returns the settings for a provider without its base URL; for most they are empty.
func providerDefaults(provider string) *Patch {
	if provider == "openrouter" {
		return own("openrouter_tool_calling")
	}
	return &Patch{}
}

// modelDefaults returns the settings for the named model. Names are those of OpenRouter and DeepSeek.
func modelDefaults(model string) *Patch {
	model = strings.ToLower(model)
	out := &Patch{}
	if model == "minimax/minimax-m2-her" {
		out.ToolUseMode, out.SupportsTools = new(lathe.ModeDisabled), new(false)
	}
	if strings.Contains(model, "reasoner") || strings.HasPrefix(model, "deepseek/") {
		out = Merge(out, own("deepseek_openrouter_compat"))
	}
	if strings.HasPrefix(model, "google/gemini-") {
		out = Merge(out, own("gemini_openrouter_compat"))
	}
	return out
}

// For returns the settings for a model on a provider. It merges (see [Merge]) the defaults, the settings of the provider and its profile,
// and those of the model, which take precedence. provider is a name of [Profile]; a model that is not known adds no settings. Settings of
// runs have their documented defaults, except for models that cannot use tools. The caller may change the patch. The error is that of
// [Profile].
func For(provider, model string) (*Patch, error) {
	profile, err := Profile(provider)
	if err != nil {
		return nil, err
	}
	return Merge(own("default_tool_calling"), providerDefaults(provider), profile, modelDefaults(model)), nil
}

// Routing configures how OpenRouter selects the server for a request. Empty fields are not sent.
type Routing struct {
	Route      string   // such as "fallback"
	Transforms []string // OpenRouter's transforms of prompts; empty but not nil: sent, to disable them
	Only       []string // names of the providers that may be used
	Order      []string // names of providers, the preferred first
	Ignore     []string // names of the providers that must not be used
}

// OpenRouterRouting returns a patch with the request_overrides for r.
func OpenRouterRouting(r Routing) *Patch {
	type provider struct {
		Only   []string `json:"only,omitempty"`
		Order  []string `json:"order,omitempty"`
		Ignore []string `json:"ignore,omitempty"`
	}
	out := struct {
		Route      string    `json:"route,omitempty"`
		Transforms []string  `json:"transforms,omitzero"`
		Provider   *provider `json:"provider,omitempty"`
	}{Route: r.Route, Transforms: r.Transforms}
	if len(r.Only)+len(r.Order)+len(r.Ignore) > 0 {
		out.Provider = &provider{r.Only, r.Order, r.Ignore}
	}
	b, err := json.Marshal(out)
	if err != nil {
		panic("preset: lists of text have a JSON form: " + err.Error())
	}
	return &Patch{RequestOverrides: b}
}
