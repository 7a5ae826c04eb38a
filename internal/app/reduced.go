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

// A ReducedTool is a tool whose definition a model server is not sent as it is.
type ReducedTool struct {
	Tool  string
	Parts []string // as of [provider.Chat.ReducedSchema], without the index of the tool
}

// ReducedTools returns, by the name of an entry of models, the tools whose definitions its server is not sent as they are, because
// its wire or its profile cannot express parts of their schemas. Models without tools, simulated models, and models with a
// dialect, whose tools are text, are left out. It makes no request.
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

// warnReduced writes one line for each model whose server gets reduced schemas. The paths are not in it, since they have names
// that a server of tools has chosen.
func warnReduced(log *slog.Logger, cfg *config.Config, set *tool.Set) error {
	reduced, err := ReducedTools(cfg, set)
	for model, tools := range text.ByName(reduced) {
		log.Warn("schemas of tools are reduced for a model server; `lathe tools doctor` lists the parts", "model", model, "tools", len(tools))
	}
	return err
}
