package app

import (
	"log/slog"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/tool"
)

// A ReducedTool is a tool of whose schema a model server receives only a part.
type ReducedTool struct {
	Tool  string
	Parts []string // in the form of [provider.Chat.ReducedSchema], without the index of the tool
}

// ReducedTools returns, for each model entry, the tools of whose schemas the server receives only a part, because its protocol or its
// profile cannot express the rest. Models without tools, simulated models, and models with a dialect, which receive tools as text, are
// omitted. It makes no requests.
func ReducedTools(cfg *config.Config, set *tool.Set) (map[string][]ReducedTool, error) {
	out := map[string][]ReducedTool{}
	for name, entry := range text.ByName(cfg.Models) {
		if !entry.SupportsTools || entry.Provider == "sim" || entry.Dialect != "native" {
			continue
		}
		model, err := NewProvider(entry, nil)
		if err != nil {
			return nil, err
		}
		chat, ok := lathe.ModelAs[*provider.Chat](model)
		if !ok {
			continue
		}
		for _, spec := range set.Specs() {
			if spec.Hidden {
				continue
			}
			parts := chat.ReducedSchema(spec)
			for i := range parts {
				_, parts[i], _ = strings.Cut(parts[i], ".")
			}
			if len(parts) > 0 {
				out[name] = append(out[name], ReducedTool{spec.Name, parts})
			}
		}
		chat.CloseIdleConnections()
	}
	return out, nil
}

// warnReduced logs one line for each model whose server receives reduced schemas. The line does not contain the paths, because they have
// names that an MCP server has chosen.
func warnReduced(log *slog.Logger, cfg *config.Config, set *tool.Set) error {
	reduced, err := ReducedTools(cfg, set)
	for model, tools := range text.ByName(reduced) {
		log.Warn("schemas of tools are reduced for a model server; `lathe tools doctor` lists the parts", "model", model, "tools", len(tools))
	}
	return err
}
