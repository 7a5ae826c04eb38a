package connect

import (
	"path/filepath"
	"strings"
)

// provider is the name under which agents list the gateway.
const provider = "lathe"

// noKeyVariable is a variable with the value NoKey, for agents that require the name of a variable.
const noKeyVariable = "LATHE_NO_KEY"

// file returns a file with its entries.
func file(path string, format *Format, entries ...Entry) File { return File{path, format, entries} }

// at returns an entry for a path whose keys are separated by dots. Keys that contain dots need an Entry with a literal Path.
func at(path string, value any) Entry { return Entry{Path: strings.Split(path, "."), Value: value} }

func (e Entry) holds(what string) Entry {
	e.Holds = what
	return e
}

// key returns the entry that refers to the variable of the API key. none is its value if the gateway requires no key.
func (s *Settings) key(path []string, before, after string, none any) Entry {
	e := Entry{Path: path, Value: none, Holds: "key", before: before, after: after}
	if s.KeyEnv != "" {
		e.Value = before + s.KeyEnv + after
	}
	return e
}

// noKey returns an entry with a placeholder key if the gateway requires no key. Otherwise the entry removes the setting.
func (s *Settings) noKey(path string) Entry {
	if s.KeyEnv != "" {
		return at(path, Absent)
	}
	return at(path, NoKey)
}

// Agents are the supported agents, in the order of docs/internals/agents.md.
var Agents = []*Agent{
	{
		Name: "codex", Wire: Responses, Program: "codex", Tested: "0.169.0",
		Files: func(d *Dirs, s *Settings) []File {
			table := "model_providers." + provider
			return []File{file(filepath.Join(d.dir("CODEX_HOME", ".codex"), "config.toml"), TOML,
				at("model", s.Model).holds("model"), at("model_provider", provider),
				at(table+".name", "Lathe"), at(table+".base_url", s.V1()).holds("url"), at(table+".wire_api", "responses"),
				s.key([]string{"model_providers", provider, "env_key"}, "", "", Absent),
			)}
		},
		Ask: "exec",
	},
	{
		Name: "claude-code", Wire: Messages, Program: "claude", Tested: "2.1.197",
		Files: func(d *Dirs, s *Settings) []File {
			return []File{file(filepath.Join(d.dir("CLAUDE_CONFIG_DIR", ".claude"), "settings.json"), JSON,
				at("env.ANTHROPIC_BASE_URL", s.URL).holds("url"), at("env.ANTHROPIC_MODEL", s.Model).holds("model"), at("env.ANTHROPIC_SMALL_FAST_MODEL", s.Model),
				s.key([]string{"apiKeyHelper"}, "printenv ", "", Absent),
				at("env.ANTHROPIC_API_KEY", Absent), // the agent would send an API key of another service to the gateway
				s.noKey("env.ANTHROPIC_AUTH_TOKEN"),
			)}
		},
		Ask: "-p",
	},
	{
		Name: "gemini-cli", Wire: Gemini, Program: "gemini", Tested: "0.61.0",
		Files: func(d *Dirs, s *Settings) []File {
			dir := filepath.Join(d.Home, ".gemini")
			return []File{
				file(filepath.Join(dir, "settings.json"), JSON,
					at("security.auth.selectedType", "gemini-api-key"), at("model.name", s.Model).holds("model")),
				file(filepath.Join(dir, ".env"), DotEnv, at("GOOGLE_GEMINI_BASE_URL", s.URL).holds("url"), s.noKey("GEMINI_API_KEY")),
			}
		},
		Environment: func(s *Settings) []Variable {
			if s.KeyEnv == "" || s.KeyEnv == "GEMINI_API_KEY" {
				return nil
			}
			return []Variable{{Name: "GEMINI_API_KEY", From: s.KeyEnv}}
		},
		Ask: "-p",
	},
	{
		Name: "opencode", Wire: Chat, Program: "opencode", Tested: "1.18.33",
		Files: openCode("opencode"), Ask: "run",
	},
	{
		Name: "qwen-code", Wire: Chat, Program: "qwen", Tested: "0.24.4",
		Files: func(d *Dirs, s *Settings) []File {
			model := []string{"modelProviders", "openai", "[id=" + s.Model + "]"}
			entries := []Entry{
				at("security.auth.selectedType", "openai"), at("model.name", s.Model).holds("model"),
				{Path: append(model[:3:3], "name"), Value: s.Model + " (Lathe)"},
				{Path: append(model[:3:3], "baseUrl"), Value: s.V1(), Holds: "url"},
				s.key(append(model[:3:3], "envKey"), "", "", noKeyVariable),
			}
			if s.KeyEnv == "" {
				entries = append(entries, at("env."+noKeyVariable, NoKey))
			}
			return []File{file(filepath.Join(d.Home, ".qwen", "settings.json"), JSON, entries...)}
		},
		Ask: "-p",
	},
	{
		Name: "cline", Wire: Chat, Program: "cline", Tested: "3.0.65",
		Files: func(d *Dirs, s *Settings) []File {
			p := "providers.openai-compatible.settings"
			entries := []Entry{at("version", 1).holds("default"), at("lastUsedProvider", "openai-compatible"), at(p+".provider", "openai-compatible"),
				at(p+".model", s.Model).holds("model"), at(p+".baseUrl", s.V1()).holds("url"),
				at("providers.openai-compatible.updatedAt", "2026-01-01T00:00:00.000Z").holds("default"),
				at("providers.openai-compatible.tokenSource", "manual").holds("default"), s.noKey(p + ".apiKey")}
			return []File{file(filepath.Join(d.Home, ".cline", "data", "settings", "providers.json"), JSON, entries...)}
		},
		KeyFlag: "-k",
	},
	{
		Name: "continue", Wire: Chat, Program: "cn", Tested: "1.5.47",
		Files: func(d *Dirs, s *Settings) []File {
			model := []string{"models", "[name=" + provider + "]"}
			entry := func(key string, value any) Entry { return Entry{Path: append(model[:2:2], key), Value: value} }
			return []File{file(filepath.Join(d.dir("CONTINUE_GLOBAL_DIR", ".continue"), "config.yaml"), YAML,
				at("name", provider).holds("default"), at("version", "0.0.1").holds("default"), at("schema", "v1").holds("default"),
				entry("provider", "openai"), entry("model", s.Model).holds("model"), entry("apiBase", s.V1()).holds("url"),
				s.key(append(model[:2:2], "apiKey"), "${{ secrets.", " }}", NoKey), entry("roles", []any{"chat"}),
			)}
		},
		Ask: "-p",
	},
	{
		Name: "pi", Wire: Chat, Program: "pi", Tested: "1.6.0",
		Files: func(d *Dirs, s *Settings) []File {
			dir := d.dir("PI_CODING_AGENT_DIR", ".pi/agent")
			p := "providers." + provider
			return []File{
				file(filepath.Join(dir, "models.json"), JSON,
					at(p+".baseUrl", s.V1()).holds("url"), at(p+".api", "openai-completions"), s.key([]string{"providers", provider, "apiKey"}, "$", "", NoKey), // since 0.77 a name without $ is the key itself
					at(p+".models", []any{map[string]any{"id": s.Model, "input": []any{"text", "image"}}})), // without input the agent sends no images
				file(filepath.Join(dir, "settings.json"), JSON,
					at("defaultProvider", provider), at("defaultModel", s.Model).holds("model")),
			}
		},
		Ask: "-p",
	},
	{
		Name: "kilo", Wire: Chat, Program: "kilo", Tested: "7.7.9",
		Files: openCode("kilo"), Ask: "run",
	},
}

// openCode returns Agent.Files for opencode and for agents derived from it. They use small_model to generate titles.
func openCode(name string) func(*Dirs, *Settings) []File {
	return func(d *Dirs, s *Settings) []File {
		p := "provider." + provider
		return []File{file(filepath.Join(d.dir("XDG_CONFIG_HOME", ".config"), name, name+".json"), JSON,
			at(p+".npm", "@ai-sdk/openai-compatible"), at(p+".name", "Lathe"),
			at(p+".options.baseURL", s.V1()).holds("url"), s.key([]string{"provider", provider, "options", "apiKey"}, "{env:", "}", NoKey),
			Entry{Path: []string{"provider", provider, "models", s.Model}, Value: map[string]any{"name": s.Model}},
			at("model", provider+"/"+s.Model).holds("model"), at("small_model", provider+"/"+s.Model),
		)}
	}
}
