// Package config reads lathe.yaml: one strict file, overlaid by LATHE_… variables of the
// environment and those by flags. It describes and checks; it builds nothing.
//
// Each setting is one field of a struct: tags hold its key, its default and its kind, and the comment
// before the field is its documentation (see the type setting). docs/config.md and comments.txt are
// generated from the fields. A key of the file that no field has is an error that names file, line and
// the nearest key; all problems are reported at once.
package config

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
)

// A Config is a configuration in force, with defaults filled in.
type Config struct {
	// Model of runs that name none: a name under `models`, or `sim/…`. Default: the only model there is, else
	// `sim/demo`.
	DefaultModel string `key:"default_model" also:"model"`
	// Folder of the files that the program writes: relative paths of `audit.path`, `tools.pins`, `tools.tokens` and
	// `tools.wasm.cache_dir` start there. Default: the folder of the configuration file; set it if that is read-only, as
	// for a service or in a container. Read at start.
	StateDir string `key:"state_dir" also:"data_dir state_directory"`
	// Models that runs may name.
	Models      map[string]*Model `key:"models" names:"model" per:"name"`
	ToolCalling ToolCalling       `key:"tool_calling"`
	Tools       Tools             `key:"tools"`
	Policy      Policy            `key:"policy"`
	Secrets     Secrets           `key:"secrets"`
	Serve       Serve             `key:"serve"`
	Cluster     Cluster           `key:"cluster"`
	MCP         MCP               `key:"mcp"`
	Approval    Approval          `key:"approval"`
	Audit       Audit             `key:"audit"`
	Keep        Keep              `key:"retention"`
	// Keys of the clients that may call the gateway; without any, every process on this machine may. The name of the
	// key is the principal of runs.
	Keys map[string]*APIKey `key:"keys" names:"rule" per:"key name" also:"api_keys"`
	// Groups of keys with a budget in common; see docs/budgets.md.
	Groups map[string]*Group `key:"groups" names:"rule" per:"group name" also:"group teams team"`
	// Workers on other machines that may execute tools for the gateway, over `GET /v1/worker`; see docs/workers.md.
	Workers   map[string]*Workers `key:"workers" names:"rule" per:"name" also:"worker fleets"`
	Telemetry Telemetry           `key:"telemetry"`
	Sim       Sim                 `key:"sim"`

	// FileKeys are the keys of the file of `serve.keys_file`, by name. Each has the rights of an entry of Keys. nil: there is no file;
	// empty: the file has no key.
	FileKeys map[string]FileKey `key:"-"`

	origin map[string]string // by key; a key that is not in it has its default
	// entries are the entries of maps of structs that files have, such as tools.mcp.notes.
	entries map[string]bool
	dir     string
	noted   []Problem // by Warn
}

// Dir returns the folder of the configuration file, to which relative paths in it refer; "" (the working folder) without a file.
func (c *Config) Dir() string { return c.dir }

// A Model configures how one model is reached and what it supports.
type Model struct {
	Name string `key:"-"` // its name in `models`
	// `openai`: a server of any `wire`; `sim`: the simulated model. What a vendor needs besides is its `profile`.
	Provider string `key:"provider" default:"openai" of:"openai=openrouter,vllm,ollama,llamacpp,litellm,sglang,lmstudio,openai_compatible sim=simulated,fake" also:"type kind"`
	// The protocol of the server: `openai`, chat completions, which most servers speak; `responses` of OpenAI; `anthropic`,
	// messages; `gemini`, generateContent of Google. Default: `anthropic` or `gemini` where `base_url` is that of the
	// vendor, else `openai`.
	Wire lathe.Wire `key:"wire" also:"api protocol api_type wire_api"`
	// The provider's name in events and metrics. Default: that of the `profile`, else by `wire`: `openai`, `anthropic` or
	// `gemini`.
	Label string `key:"label" is:"label" also:"name"`
	// Address of the server, with its version. Default: that of the vendor of the `wire`, such as
	// `https://api.openai.com/v1`. May be a reference.
	BaseURL Ref `key:"base_url" is:"url" also:"url endpoint api_base"` // empty: the provider's own
	// Key of the server, as a reference: `${OPENAI_API_KEY}` or `${file:/run/secrets/key}`.
	Key Ref `key:"key" is:"key" also:"api_key token secret"`
	// Further headers of each request.
	Headers map[string]Ref `key:"headers" names:"header" per:"header name to text, may be a reference" is:"header" also:"extra_headers"`
	// The model's name on the server. Default: the entry's name.
	Model string `key:"model" also:"id"`
	// Settings of a provider or server, its address included, by name: `openrouter`, `mistral`, `vllm` and others of
	// docs/presets.md. Keys that are set here win.
	Profile string `key:"profile" is:"word" also:"vendor"`
	// Kind of the server, whose rules of docs/internals/destinations.md requests follow. Default: that of the `profile`,
	// the address or the model's name.
	Destination string `key:"destination" is:"word"`
	// Rules of docs/internals/destinations.md that differ for this server, such as `system: one`.
	Accepts map[string]string `key:"accepts" names:"rule" per:"rule to value"`
	// For models that refuse a block of thinking if its prefix (system text, tools, earlier messages) has changed:
	// `drop_block` asks the server to drop it, `keep` does not. Default: that of docs/internals/destinations.md.
	ThinkingBinding string `key:"thinking_binding" of:"keep drop_block"`
	// Presets of docs/presets.md, by name; a later one wins over an earlier, and over the profile.
	Presets []string `key:"presets" also:"preset"`
	// How the model writes tool calls: `native`, `auto` or a dialect by name.
	Dialect string `key:"dialect" default:"native" is:"word" also:"format"`
	// Also read calls of offered tools in the text of a server that returns calls.
	RecoverLeakedCalls bool `key:"recover_leaked_calls" default:"false" also:"leaked_calls recover"`
	// Read a message as a call if it is one JSON object, in a code fence or not, with the name of an offered tool and
	// arguments that fit its schema, as qwen2.5-coder writes calls. Lathe then encodes the answers itself, and does not
	// stream one that begins with `{` until it is known to be text.
	BareCalls bool `key:"bare_calls" default:"false"`
	// `starts_open`: the text up to the closing mark of thinking is reasoning, for models whose chat template opens the
	// block of thinking in the prompt, on servers that leave it in the answer. Lathe then encodes the answers
	// itself instead of passing the server's bytes through.
	Thinking string `key:"thinking" default:"marked" of:"marked starts_open"`
	// Let the model server constrain calls to the schemas of the tools: `strict` sets `strict` on the tools that run
	// here, with the schema reduced to what the vendor takes; `llamacpp`, `vllm` and `sglang` send a grammar of the
	// `dialect` in the form of that server; `auto` chooses what the server of the `profile` supports, or `off`.
	Constrain string `key:"constrain" default:"off" of:"off=none,false auto strict=strict_tools llamacpp vllm sglang" also:"constrained guided_decoding"`
	// Send the grammar only after so many turns in a row with a call that could not be read; `0`: always.
	ConstrainAfter int `key:"constrain_after" default:"0" range:"0..8"`
	// Time to the first piece of an answer, attempts included; `0`: no bound. After it `read_timeout` and `run_timeout`
	// apply.
	ClientTimeout time.Duration `key:"client_timeout" default:"120s" off:"0" also:"timeout request_timeout"`
	// Time to connect; `0`: no bound.
	OpenTimeout time.Duration `key:"open_timeout" default:"10s" off:"0" also:"connect_timeout"`
	// Wait for each next byte; `0`: no bound. Default: `client_timeout`. After the finish reason it is 10 s at most, and an
	// answer without an end mark then counts as complete.
	ReadTimeout time.Duration `key:"read_timeout" off:"0" also:"idle_timeout"` // negative: no bound, as of the other timeouts
	// Wait for a server that says that it loads the model, no part of `client_timeout`; `0`: such an answer is a
	// failed attempt.
	LoadingTimeout time.Duration `key:"loading_timeout" default:"2m" off:"0" also:"startup_timeout wait_for_model"`
	// Attempts of one model call, the first one included.
	MaxAttempts int `key:"max_attempts" default:"3" range:"1..20" also:"retries max_retries"`
	// `false`: runs with this model use no tools.
	SupportsTools bool `key:"supports_tools" default:"true" also:"tools"`
	// `false`: the model asks for one call a turn.
	SupportsParallel bool `key:"supports_parallel" default:"true" also:"parallel"`
	// Member in which reasoning is sent back to the entry; `"*"`, the default: the one it came in; `none`: it is not
	// sent.
	ReasoningField string `key:"reasoning_field" is:"word"`
	// Ask for token counts in streams.
	IncludeUsage bool `key:"include_usage" default:"true" also:"stream_usage"`
	// Send the token limit under this name, as OpenAI's reasoning models want it.
	MaxCompletionTokens bool `key:"max_completion_tokens" default:"false"`
	// Token limit of one answer where the request has none and the wire demands one, as `anthropic` does.
	MaxTokens int        `key:"max_tokens" default:"8192" range:"1.." also:"max_output_tokens"`
	Price     ModelPrice `key:"price" also:"prices cost"`
	// Most tokens of one answer that the server sends where a request has no limit, reasoning included.
	// Default: that of docs/presets.md where `base_url` is the vendor's; `0`: unknown, and a request
	// under a budget is sent with `max_tokens` as its limit.
	OutputLimit int `key:"output_limit" default:"0" range:"0..10000000" also:"max_output"`
	// One line of a stream.
	MaxLineBytes int `key:"max_line_bytes" default:"1MiB" is:"size" range:"1.."`
	// One event of a stream.
	MaxEventBytes int `key:"max_event_bytes" default:"8MiB" is:"size" range:"1.."`
	// One response, all its events together.
	MaxResponseBytes int `key:"max_response_bytes" default:"64MiB" is:"size" range:"1.."`
	// Text, reasoning and arguments of one answer.
	MaxAnswerBytes int `key:"max_answer_bytes" default:"32MiB" is:"size" range:"1.."`
	// Tool calls of one answer.
	MaxAnswerCalls int `key:"max_answer_calls" default:"256" range:"1.."`
	// How often one answer is continued that the model server has paused (pause_turn of Messages).
	MaxContinuations int        `key:"max_continuations" default:"8" range:"1.."`
	Transforms       Transforms `key:"transforms"`
	// What becomes of content that the server's wire cannot express: audio, video, files, images by reference. `refuse`:
	// after the last answer it is an error, and in older messages `unsupported_marker` stands for it; `drop`: it is left
	// out. Answers list it in `X-Lathe-Dropped` and `lathe.dropped`.
	UnsupportedContent string `key:"unsupported_content" default:"refuse" of:"refuse=error drop=ignore"`
	// Text for the model in the place of such content; `{type}` stands for its type.
	UnsupportedMarker string `key:"unsupported_marker" default:"[{type}: not sent, because the API of the model has no form for it]"`
	// Members of a request that go to the model server besides those of OpenAI's published schema and of the
	// profile.
	Pass []string `key:"pass" also:"pass_through forward extra_members"`
	// Further members of each request, merged with those of presets; not model, messages, tools, tool_choice,
	// response_format or stream.
	RequestOverrides json.RawMessage `key:"request_overrides" also:"extra_body overrides"` // an object; nil: none

	run []Expanded // see Config.SettingsFor
}

// ToolCalling is the settings and limits of runs.
type ToolCalling struct {
	// Whether runs may use tools; `false` is `tool_use_mode: disabled` for all.
	Enabled        bool `key:"enabled" default:"true"`
	lathe.Settings `key:",inline"`
	// Read the short form `<tool:NAME>{…}` as a call.
	AllowDeprecatedSyntax bool `key:"allow_deprecated_syntax" default:"false"`
	// Show the text of calls that could not be read as a part of the answer.
	ShowUnreadableCalls bool      `key:"show_unreadable_calls" default:"false"`
	Retention           Retention `key:"retention"`
	lathe.Limits        `key:",inline"`
}

// Retention configures which tool results a session's history keeps after a run.
type Retention struct {
	// What a session's history keeps of what a model said between its calls: nothing, its length and a hash, its
	// beginning without keys, values that are named as secrets, user information in URLs and e-mail addresses, or all of it in memory.
	Mode string `key:"mode" default:"metrics_only" of:"metrics_only hashed_slice redacted_snippets raw_ephemeral"`
	// Keep tool results whole, in a session's history and in the store.
	StoreRawToolOutput bool `key:"store_raw_tool_output" default:"false"`
	// What is kept of each otherwise; `0`: the default, and less than 64 counts as 64.
	MaxOutputBytes int `key:"max_output_bytes" default:"2KiB" is:"size" range:"0.."`
}

// Tools configures the sources of tools.
type Tools struct {
	// Built-in tools that runs may use, by name; `all` for those that keep no state, an empty list for none.
	Builtin []string `key:"builtin" default:"all" is:"tool" also:"enabled"`
	// Tools that are one HTTP request each; see docs/tools-http.md.
	HTTP map[string]*HTTPTool `key:"http" names:"tool" per:"tool name" also:"rest"`
	// Tools that are operations of an OpenAPI document; see docs/tools-http.md.
	OpenAPI map[string]*OpenAPI `key:"openapi" names:"tool" per:"name" also:"swagger"`
	// MCP servers, whose tools are offered as `NAME__tool`; see docs/tools-mcp.md.
	MCP map[string]*MCPServer `key:"mcp" names:"server" per:"server name" also:"mcp_servers mcpServers"`
	// Agents as tools: each call is a run of its own; see docs/tools-agents.md.
	Run map[string]*Agent `key:"run" names:"tool" per:"tool name" also:"agents agent"`
	// Tools whose calls are activities on a task queue of Temporal; see docs/temporal.md. Only `lathe-temporal serve` executes
	// them.
	Temporal map[string]*TemporalTool `key:"temporal" names:"tool" per:"tool name" also:"queue queues activities"`
	// File of the accepted definitions of MCP tools; a relative path starts at `state_dir`.
	Pins string `key:"pins" default:"lathe.pins.json" also:"pins_file lockfile"`
	// File of the access tokens for servers of tools, readable by its owner alone; a relative path starts at
	// `state_dir`.
	Tokens  string     `key:"tokens" default:"lathe.tokens.json" also:"tokens_file"`
	Search  ToolSearch `key:"search"`
	Egress  Egress     `key:"egress"`
	WASM    WASM       `key:"wasm"`
	Circuit Circuit    `key:"circuit"`
	Retry   ToolRetry  `key:"retry"`
}

// Telemetry configures events, logs, metrics and traces.
type Telemetry struct {
	// Put message, argument and output text into traces and audit lines.
	Content bool `key:"content" default:"false"`
	// How arguments are hashed for events: `compat` the first 200 characters, `full` all, `keyed` all under
	// `args_preview_key`.
	ArgsPreviewHash string `key:"args_preview_hash" default:"compat" of:"compat full keyed" also:"hash_mode"`
	// Address of an OpenTelemetry collector that takes spans over HTTP, such as `http://127.0.0.1:4318`; see
	// docs/telemetry.md. Read at start.
	OTLPEndpoint Ref `key:"otlp_endpoint" is:"url" also:"otel otlp traces collector"`
	// Address of the gateway that stores the runs, such as `https://lathe.example.com`: spans have the address of the run's
	// page, where readers with a key find the texts. Read at start.
	ContentURL Ref `key:"content_url" is:"url"`
	// Requests that pass on the caller's W3C `baggage`, if spans are sent: `none`, those of `tools`, or `all`, also those to
	// models. Read at start.
	Baggage string `key:"baggage" default:"none" of:"none tools all"`
	// Names of ten older metrics: `seeds` without a prefix, such as `tool_calls_total`; `lathe` with the prefix, such as
	// `lathe_tool_calls_total`, and times in seconds; `both`. See docs/events.md. Read at start.
	MetricNames string `key:"metric_names" default:"seeds" of:"seeds lathe both" also:"metrics_prefix metric_prefix"`
	// Key of the `keyed` hash, as a reference, of at least 16 bytes.
	ArgsPreviewKey Ref `key:"args_preview_key" is:"key"`
	// Log why tools failed: the text of their errors and of outputs that report a failure, without what looks like a key. It may hold
	// arguments and outputs.
	LogToolErrors bool `key:"log_tool_errors" default:"false" also:"tool_errors"`
}

// Sim configures the simulated model.
type Sim struct {
	// Pause between the tokens of the model `sim/slow`.
	TokenDelay time.Duration `key:"token_delay" default:"30ms" range:"0s.." also:"delay"`
	// Script files; `NAME` is the model `sim/script-NAME`.
	Scripts map[string]string `key:"scripts" names:"script" per:"name to path" also:"script"`
}

// Settings returns the settings of runs. If tool_calling.enabled is false, they use no tools.
func (c *Config) Settings() lathe.Settings {
	s := c.ToolCalling.Settings
	if !c.ToolCalling.Enabled {
		s.ToolUseMode = lathe.ModeDisabled
	}
	return s
}

// Limits returns the limits of runs.
func (c *Config) Limits() lathe.Limits { return c.ToolCalling.Limits }

// SimModel is the simulated model that is the default if no model is configured.
const SimModel = "sim/demo"

// CommandLineModel is the name of the model entry that a command-line flag with a URL adds.
const CommandLineModel = "command-line"

// Model returns the model with this name. "" is the default: default_model, else the only entry of models, else [SimModel] if there are no
// entries. A name that begins with "sim/" needs no entry. The error for any other name is a *[lathe.Error] that suggests the nearest one.
func (c *Config) Model(name string) (*Model, error) {
	m, err := c.model(name)
	if err != nil {
		return nil, lathe.CodeInvalidConfig.Wrap("config", err)
	}
	return m, nil
}

// model is [Config.Model] with an error without a code.
func (c *Config) model(name string) (*Model, error) {
	if name == "" {
		name = c.DefaultModel
	}
	names := slices.Sorted(maps.Keys(c.Models))
	if name == "" && len(names) == 1 {
		name = names[0]
	}
	if name == "" && len(names) == 0 {
		name = SimModel
	}
	if m := c.Models[name]; m != nil {
		return m, nil
	}
	if strings.HasPrefix(name, "sim/") {
		return newModel(name, "sim"), nil
	}
	return nil, unknownModel(name, names)
}

// Origin returns where the value of a key was set: "lathe.yaml:3", "LATHE_DEFAULT_MODEL", "--model" or "default".
func (c *Config) Origin(key string) string {
	return cmp.Or(c.origin[key], "default")
}
