package app

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/preset"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/sim"
)

// ModelOptions are the options of [NewModel] and [NewProvider]. The zero value is usable.
type ModelOptions struct {
	// Sim configures simulated models, see [SimOptions]; nil: no scripts.
	Sim *sim.Options
	Log *slog.Logger // nil: discards
}

// NewModel returns the model of a configuration entry, with the transforms and the dialect that the entry names.
func NewModel(cfg *config.Config, entry *config.Model, opts *ModelOptions) (lathe.Model, error) {
	model, err := NewProvider(entry, opts)
	if err != nil {
		return nil, err
	}
	return Decorate(cfg, entry, model)
}

// accepts returns the destination rules of a model entry.
func accepts(m *config.Model) map[string]string {
	if m.ThinkingBinding == "" {
		return m.Accepts
	}
	rules := map[string]string{"thinking_binding": m.ThinkingBinding}
	maps.Copy(rules, m.Accepts)
	return rules
}

// NewProvider returns the model of a configuration entry without its transforms and its dialect. Requests to a simulated model use the same
// protocol as others, with a transport within this process.
func NewProvider(m *config.Model, options *ModelOptions) (lathe.Model, error) {
	if options == nil {
		options = &ModelOptions{}
	}
	name := cmp.Or(m.Model, m.Name)
	opts := &provider.Options{
		Name:     m.Label,
		BaseURL:  m.BaseURL.Reveal(),
		Key:      m.Key.Secret(),
		Headers:  map[string]secret.Secret{},
		Timeouts: provider.Timeouts{Client: m.ClientTimeout, Open: m.OpenTimeout, Read: m.ReadTimeout, Loading: m.LoadingTimeout},
		Retry:    provider.Retry{Attempts: m.MaxAttempts},
		Server: provider.Server{
			Kind:                cmp.Or(m.Destination, m.Profile),
			Accepts:             accepts(m),
			ReasoningField:      m.ReasoningField,
			NoUsage:             !m.IncludeUsage,
			MaxCompletionTokens: m.MaxCompletionTokens,
			TopK:                slices.Contains(passed(m), "top_k"),
			Strict:              strictTools(m),
			DropContent:         m.UnsupportedContent == "drop",
			ContentMarker:       m.UnsupportedMarker,
			NoTools:             !m.SupportsTools,
			NoParallel:          !m.SupportsParallel,
		},
		Limits: provider.Limits{
			MaxLineBytes:     m.MaxLineBytes,
			MaxEventBytes:    m.MaxEventBytes,
			MaxResponseBytes: int64(m.MaxResponseBytes),
			MaxAnswerBytes:   m.MaxAnswerBytes,
			MaxAnswerCalls:   m.MaxAnswerCalls,
			MaxContinuations: m.MaxContinuations,
		},
		MaxTokens: m.MaxTokens,
		Entry:     m.Name,
		Log:       options.Log,
	}
	if m.Name == config.CommandLineModel {
		opts.Entry = name
	}
	if opts.Server.ReasoningField == "" && writesHarmony(m.Dialect, name) {
		opts.Server.ReasoningField = "reasoning_content" // analysis remains part of the turn until the turn is answered
	}
	for k, v := range m.Headers {
		opts.Headers[k] = v.Secret()
	}
	if m.Provider == "sim" {
		server := sim.New(options.Sim)
		if err := checkSimulated(server, name); err != nil {
			return nil, err
		}
		if _, written, isText := strings.Cut(name, "+"); isText && written != provider.NativeDialect {
			if _, err := LookupDialect(written); err != nil {
				return nil, invalidRequest("no simulated model %q: %w", name, err)
			}
		}
		opts.BaseURL = "http://sim.invalid" // each protocol adds its own path
		opts.Transport = server.Transport()
	}
	if opts.Name == "" && (m.Provider == sim.Provider || isSimulated(name)) {
		opts.Name = sim.Provider // wherever the model runs, it is simulated
	}
	model, err := provider.New(m.Wire, name, opts)
	if err != nil {
		return nil, invalidConfig("model %s: %w", m.Name, Cause(err))
	}
	return model, nil
}

// writesCalls reports whether the model of an entry writes its calls as text, in a dialect.
func writesCalls(m *config.Model) bool { return m.Dialect != "" && m.Dialect != provider.NativeDialect }

// strictTools returns whether and how `strict` is set on the tools of a model entry. Local model servers accept all schemas; servers of
// vendors refuse some keywords. For other servers it is set only if the configuration sets constrain.
func strictTools(m *config.Model) provider.StrictTools {
	if writesCalls(m) {
		return provider.StrictOff // requests with a dialect contain no tools
	}
	switch m.Profile {
	case "vllm", "sglang":
		if m.Constrain == "strict" || m.Constrain == "auto" {
			return provider.StrictWhole
		}
	case "openai", "openai_responses", "anthropic":
		if m.Constrain == "auto" {
			return provider.StrictSubset
		}
	}
	if m.Constrain == "strict" {
		return provider.StrictSubset
	}
	return provider.StrictOff
}

// constraintServer returns the server whose grammar format is used in requests of a model entry; "": requests contain no grammar.
func constraintServer(m *config.Model) string {
	switch m.Constrain {
	case "", "off", "strict":
		return ""
	case "auto":
		if writesCalls(m) && !m.RecoverLeakedCalls && slices.Contains(dialect.ConstraintServers(), m.Profile) {
			return m.Profile
		}
		return ""
	}
	return m.Constrain
}

// passed returns the members of a client's request that are passed on to the model server although Lathe does not interpret them. Without a
// profile the chat completions server is unknown, and the known members of all such servers are passed on.
func passed(m *config.Model) []string {
	if m.Profile == "" && m.Wire != "" && m.Wire != lathe.WireOpenAIChat {
		return m.Pass
	}
	return slices.Concat(preset.Members(m.Profile), m.Pass)
}

func writesHarmony(dialectName, model string) bool {
	if dialectName == "auto" {
		dialectName, _ = dialect.ForModel(model)
	}
	return dialectName == "harmony"
}

// Decorate adds the transforms and the dialect of a configuration entry to a model.
func Decorate(cfg *config.Config, m *config.Model, model lathe.Model) (lathe.Model, error) {
	model, err := withTransforms(cfg, m, model)
	if err != nil {
		return nil, err
	}
	if m.Constrain == "strict" && writesCalls(m) {
		return nil, invalidConfig("model %s: constrain: strict is set on tools, but with a dialect requests have none: set it to %s", m.Name,
			strings.Join(dialect.ConstraintServers(), ", "))
	}
	if server := constraintServer(m); server != "" && m.Wire != "" && m.Wire != lathe.WireOpenAIChat {
		return nil, invalidConfig("model %s: constrain: %s is sent with chat completions only; its wire is %s", m.Name, server, m.Wire)
	}
	model, err = provider.WithDialect(model, m.Dialect, &provider.DialectOptions{
		MaxPayloadBytes:       cfg.Limits().MaxPayloadBytes,
		AllowDeprecatedSyntax: cfg.ToolCalling.AllowDeprecatedSyntax,
		ShowUnreadableCalls:   cfg.ToolCalling.ShowUnreadableCalls,
		RecoverLeakedCalls:    m.RecoverLeakedCalls,
		ThinkingStartsOpen:    m.Thinking == "starts_open",
		BareCalls:             m.BareCalls,
		Constrain:             constraintServer(m),
		ConstrainAfter:        m.ConstrainAfter,
	})
	if err != nil {
		return nil, invalidConfig("model %s: %w", m.Name, Cause(err))
	}
	return model, nil
}

// LookupDialect returns the dialect of that name. The error suggests similar names.
func LookupDialect(name string) (*dialect.Dialect, error) {
	d, ok := dialect.Lookup(name)
	if !ok {
		return nil, fmt.Errorf("no dialect %q: %s", name, text.Suggest(name, dialect.Names(), "there are "+strings.Join(dialect.Names(), ", ")))
	}
	return d, nil
}
