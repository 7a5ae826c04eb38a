package preset

import (
	"encoding/json"
	"strings"

	"github.com/lathe-run/lathe"
)

type row struct {
	name    string
	purpose string // what the settings are for, in one sentence
	patch   func() *Patch
}

// presets lists the presets by name.
var presets = []row{
	{"default_tool_calling", "The documented defaults, and tolerance for how servers write calls.", defaultToolCalling},
	{"openai_compatible_reliability", "Servers that take over OpenAI's wire and are careless with calls.",
		reliability},
	{"openrouter_tool_calling", "OpenRouter, which passes on what many servers answer.",
		reliability},
	{"content_tag_tool_call_fallback", "Models that write `<tool_call>` into their text.", contentTagFallback},
	{"deepseek_openrouter_compat", "DeepSeek behind OpenRouter.", deepseekOpenRouter},
	{"gemini_openrouter_compat", "Gemini behind OpenRouter.", geminiOpenRouter},
	{"thinking_starts_open", "Models whose template opens the thought, such as DeepSeek-R1, Qwen3-Thinking and Nemotron, on a server without a reasoning parser.",
		func() *Patch { return &Patch{Thinking: to("starts_open")} }},
	{"bare_calls", "Models that write a call as nothing but its JSON, such as qwen2.5-coder.",
		func() *Patch { return &Patch{BareCalls: to(true)} }},
}

// profiles are the settings of providers and servers, in addition to those that For adds.
var profiles = []row{
	{"openai", "OpenAI.", func() *Patch { return &Patch{Label: to("openai")} }},
	{"openai_responses", "OpenAI on the wire of its Responses API.", func() *Patch {
		return Merge(at("openai", "https://api.openai.com/v1"), on("responses"))
	}},
	{"anthropic", "Anthropic on its own wire.", func() *Patch {
		return Merge(at("anthropic", "https://api.anthropic.com/v1"), on("anthropic"))
	}},
	{"google", "Gemini on Google's own wire.", func() *Patch {
		return Merge(at("google", "https://generativelanguage.googleapis.com/v1beta"), on("gemini"))
	}},
	{"openrouter", "OpenRouter.", func() *Patch { return at("openrouter", "https://openrouter.ai/api/v1") }},
	{"volcanoengine", "Ark of VolcanoEngine.", func() *Patch {
		return at("volcanoengine", "https://ark.cn-beijing.volces.com/api/v3")
	}},
	{"deepseek", "DeepSeek's own server. In thinking mode it refuses a history of calls without their reasoning.", func() *Patch {
		return Merge(at("deepseek", "https://api.deepseek.com/v1"), deepseekOpenRouter(), &Patch{ReasoningField: to("reasoning_content")})
	}},
	{"gemini", "Gemini behind Google's compatible endpoint. It refuses calls from elsewhere without a signature.", func() *Patch {
		return Merge(at("gemini", "https://generativelanguage.googleapis.com/v1beta/openai"),
			&Patch{MessageTransforms: []string{"assistant_tool_calls_extra_content_skip_validator_if_missing"}})
	}},
	{"mistral", "Mistral's own server. It refuses ids that are not nine letters and digits, and `stream_options`.", func() *Patch {
		return Merge(at("mistral", "https://api.mistral.ai/v1"),
			&Patch{IncludeUsage: to(false), ToolCallTransforms: []string{"tool_call_ids_nine_alphanumeric"}})
	}},
	{"vllm", "A vLLM server of one's own.", local("vllm", "8000")},
	{"ollama", "Ollama.", local("ollama", "11434")},
	{"llamacpp", "The server of llama.cpp.", local("llamacpp", "8080")},
	{"sglang", "An SGLang server.", local("sglang", "30000")},
	{"lmstudio", "LM Studio.", local("lmstudio", "1234")},
}

// Aliases of profiles, in folded form; see unknown.
var otherProfiles = map[string]string{
	"volcano": "volcanoengine", "volcano_engine": "volcanoengine", "volcengine": "volcanoengine", "ark": "volcanoengine", "doubao": "volcanoengine",
	"open_router": "openrouter", "open_ai": "openai", "openai_compatible": "openai", "compatible": "openai", "openai_like": "openai",
	"llama_cpp": "llamacpp", "llama_server": "llamacpp", "llama": "llamacpp", "lm_studio": "lmstudio",
	"gemini_openai": "gemini", "google_gemini": "google", "gemini_native": "google", "claude": "anthropic", "messages": "anthropic", "responses": "openai_responses",
	"mistralai": "mistral", "mistral_ai": "mistral", "deep_seek": "deepseek",
}

var otherPresets = map[string]string{
	"default": "default_tool_calling", "tool_calling": "default_tool_calling", "openrouter": "openrouter_tool_calling",
	"reliability": "openai_compatible_reliability", "openai_compatible": "openai_compatible_reliability",
	"deepseek_compat": "deepseek_openrouter_compat", "gemini_compat": "gemini_openrouter_compat",
	"tag_fallback": "content_tag_tool_call_fallback", "content_tag_fallback": "content_tag_tool_call_fallback",
	"openrouter_routing": "request_overrides (route, transforms, provider)",
}

// structural returns the response transforms for servers that return calls in other structures than OpenAI's.
func structural() []string {
	return []string{"assistant_function_call_to_tool_calls", "assistant_tool_calls_object_to_array", "assistant_tool_calls_arguments_json_string_if_hash"}
}

func defaultToolCalling() *Patch {
	return Merge(&Patch{ToolUseMode: to(lathe.ModeRelaxed), FixEmptyFinal: to(true), FixEmptyFinalDisableTools: to(true), FallbackRetryCount: to(0)},
		reliability())
}

func reliability() *Patch {
	return &Patch{ResponseTransforms: structural(), ToolCallTransforms: []string{"assistant_tool_calls_arguments_blank_to_empty_object"}}
}

func contentTagFallback() *Patch {
	return &Patch{ResponseTransforms: []string{"assistant_content_tool_call_tags_to_tool_calls"}}
}

func deepseekOpenRouter() *Patch {
	return &Patch{MessageTransforms: []string{"assistant_tool_calls_reasoning_content_empty_if_missing"}}
}

func geminiOpenRouter() *Patch {
	return &Patch{MessageTransforms: []string{"assistant_tool_calls_signature_skip_validator_if_missing"}}
}

func at(label, url string) *Patch { return &Patch{Label: to(label), BaseURL: to(url)} }

func on(wire string) *Patch { return &Patch{Wire: to(wire)} }

// local returns a function that returns the patch for a server on this machine with this port.
func local(name, port string) func() *Patch {
	return func() *Patch {
		return Merge(at(name, "http://localhost:"+port+"/v1"), reliability())
	}
}

func find(rows []row, what, name string, others map[string]string) (*Patch, error) {
	names := make([]string, len(rows))
	for i := range rows {
		if rows[i].name == name {
			return rows[i].patch(), nil
		}
		names[i] = rows[i].name
	}
	return nil, notFound(what, name, names, others)
}

// Named returns the preset of that name. The caller owns the patch. The error for an unknown name suggests the nearest one.
func Named(name string) (*Patch, error) { return find(presets, "preset", name, otherPresets) }

// Profile returns the settings for the provider or server of that name, including its base URL.
func Profile(name string) (*Patch, error) { return find(profiles, "profile", name, otherProfiles) }

// providerDefaults returns the settings for a provider without its base URL; for most they are empty. An unknown provider is an error.
func providerDefaults(provider string) (*Patch, error) {
	if _, err := Profile(provider); err != nil {
		return nil, err
	}
	if provider == "openrouter" {
		return Named("openrouter_tool_calling")
	}
	return &Patch{}, nil
}

// modelDefaults returns the settings for the named model. Names are those of OpenRouter and DeepSeek.
func modelDefaults(model string) *Patch {
	model = strings.ToLower(model)
	var patches []*Patch
	if model == "minimax/minimax-m2-her" {
		patches = append(patches, &Patch{ToolUseMode: to(lathe.ModeDisabled), SupportsTools: to(false)})
	}
	if strings.Contains(model, "reasoner") || strings.HasPrefix(model, "deepseek/") {
		patches = append(patches, deepseekOpenRouter())
	}
	if strings.HasPrefix(model, "google/gemini-") {
		patches = append(patches, geminiOpenRouter())
	}
	return Merge(patches...)
}

// For returns the settings of a model on a provider: the merged settings of the defaults, the provider, its profile and the model. Except
// for models that cannot use tools, all settings of runs are at their documented defaults.
func For(provider, model string) (*Patch, error) {
	profile, err := Profile(provider)
	if err != nil {
		return nil, err
	}
	defaults, err := providerDefaults(provider)
	if err != nil {
		return nil, err
	}
	return Merge(defaultToolCalling(), defaults, profile, modelDefaults(model)), nil
}

// Routing configures how OpenRouter selects the server. Nil and empty lists are not sent; only an empty Transforms is sent, because it
// disables transforms.
type Routing struct {
	Route      string
	Transforms []string
	Only       []string // names of providers
	Order      []string
	Ignore     []string
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

func to[T any](v T) *T { return &v }
