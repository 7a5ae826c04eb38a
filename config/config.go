// Package config reads lathe.yaml: one strict file, overlaid by LATHE_… variables of the
// environment and those by flags. It describes and checks; it builds nothing.
//
// Every key stands once in the tables of keys.go, with its default and what it means; the reference
// in docs/config.md is written from them. Whatever is not in the tables is an error that names file,
// line and the nearest right word, and all problems are reported at once.
package config

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
)

// A Config is what a configuration says, defaults filled in.
type Config struct {
	DefaultModel string // the model of runs that name none; "" when nothing says so
	Models       map[string]*Model
	ToolCalling  ToolCalling
	Tools        Tools
	Policy       Policy
	Secrets      Secrets
	Audit        Audit
	Approval     Approval
	Keep         Keep
	Telemetry    Telemetry
	Sim          Sim
	Serve        Serve
	Cluster      Cluster
	MCP          MCP
	Keys         map[string]*APIKey // by name, which is who runs
	Workers      map[string]*Workers

	origin map[string]string // by key; a key that is not in it has its default
	dir    string
}

// Dir is the folder of the file, where its relative paths start; "": where the program runs.
func (c *Config) Dir() string { return c.dir }

// A Model says how one model is reached and what it can do.
type Model struct {
	Name     string // its name in `models`
	Provider string // "openai" or "sim"
	Label    string // the provider's name in events and metrics; empty: it goes by Provider
	BaseURL  Ref    // empty: the provider's own
	Key      Ref
	Headers  map[string]Ref
	Model    string // as the server calls it; Name where nothing is said
	// Profile and Presets are as they were written; what they say is in the other fields.
	Profile string
	Presets []string
	Dialect string
	// RecoverLeakedCalls takes calls out of the text of a server that has calls of its own.
	RecoverLeakedCalls bool

	// A negative timeout is off. ReadTimeout is ClientTimeout where nothing is said.
	ClientTimeout, OpenTimeout, ReadTimeout, LoadingTimeout time.Duration
	MaxAttempts                                             int

	SupportsTools       bool
	SupportsParallel    bool
	ReasoningField      string
	IncludeUsage        bool
	MaxCompletionTokens bool
	MaxLineBytes        int
	MaxEventBytes       int

	Transforms       Transforms
	RequestOverrides json.RawMessage // an object; nil: none
	Pass             []string        // members of a request that go to the server besides those that are known

	run []Expanded // see Config.SettingsFor
}

// ToolCalling holds the settings and limits of runs.
type ToolCalling struct {
	Enabled               bool
	AllowDeprecatedSyntax bool
	ShowUnreadableCalls   bool
	Retention             Retention
	Settings              lathe.Settings // see Config.Settings
	Limits                lathe.Limits
}

// Retention says what a session's history keeps of tool results after a run.
type Retention struct {
	Mode               string // metrics_only, hashed_slice, redacted_snippets, raw_ephemeral
	StoreRawToolOutput bool
	MaxOutputBytes     int
}

// Tools says which tools there are.
type Tools struct {
	Builtin []string // names of builtin tools; the single name "all" stands for every one
	HTTP    map[string]*HTTPTool
	OpenAPI map[string]*OpenAPI
	MCP     map[string]*MCPServer
	Run     map[string]*Agent
	// Pins is the file of accepted definitions of MCP tools, as the file writes it.
	Pins string
	// Tokens is the file of the access tokens for servers of tools, as the file writes it.
	Tokens  string
	WASM    WASM
	Egress  Egress
	Circuit Circuit
	Retry   ToolRetry
}

// Telemetry says what events, logs and traces show.
type Telemetry struct {
	Content         bool
	ArgsPreviewHash string // compat, full, keyed
	ArgsPreviewKey  Ref    // for keyed
	OTLPEndpoint    Ref    // of a collector; empty: none is told
}

// Sim sets up the simulated model.
type Sim struct {
	TokenDelay time.Duration
	Scripts    map[string]string // script files by name, as the file writes them
}

// Settings returns the settings of runs. Without tool_calling.enabled no tools are used.
func (c *Config) Settings() lathe.Settings {
	s := c.ToolCalling.Settings
	if !c.ToolCalling.Enabled {
		s.ToolUseMode = lathe.ModeDisabled
	}
	return s
}

// Limits returns the limits of runs.
func (c *Config) Limits() lathe.Limits { return c.ToolCalling.Limits }

// SimModel is the model that answers where none is configured.
const SimModel = "sim/demo"

// Model returns the model of that name. With an empty name it returns the default model: what
// default_model says, else the only one in `models`, else [SimModel] where there are none. A name
// that begins with "sim/" needs no entry. The error is a *[lathe.Error] that names the nearest model.
func (c *Config) Model(name string) (*Model, error) {
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
	return nil, &lathe.Error{Code: lathe.CodeInvalidConfig, Op: "config", Err: unknownModel(name, names)}
}

// Origin says where the value of a key comes from: "lathe.yaml:3", "LATHE_DEFAULT_MODEL",
// "--model" or "default".
func (c *Config) Origin(key string) string {
	if o, ok := c.origin[key]; ok {
		return o
	}
	return "default"
}
