package config

import (
	"maps"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/text"
)

// Workers configures a pool of remote processes that execute tools for the gateway and authenticate with the same token.
type Workers struct {
	// What its workers show, as a reference: `${NAME}` or `${file:path}`; 16 characters at least.
	Token Ref `key:"token" is:"key" also:"key secret"`
	// Tools that its workers may serve, by name, or by the beginning of names with a `*` behind; `"*"`: all.
	Tools []string `key:"tools" is:"tool prefix" also:"tool allow"` // exact names, or the beginning of names with a * behind; nil: none
	// Effects that are believed when a worker claims them for a tool: `read_only`, `idempotent`. What is not
	// believed counts as `writes`.
	Effects []string `key:"effects" is:"effect" also:"effect"`
	// Keys whose runs have the tools of its workers, by name. Default: `["*"]`, all. An empty list: none. For other
	// keys the tools are not there.
	Keys []string `key:"keys" is:"rule" unset:"all" also:"tenants"` // names of keys; nil: all; empty: none
	// Calls that one worker has at once; `0`: as many as it takes.
	MaxConcurrency int `key:"max_concurrency" default:"0" range:"0..1024" also:"concurrency"`
}

// Believed returns the effects that the workers may declare for their tools.
func (w *Workers) Believed() (out []lathe.Effect) {
	for _, e := range []lathe.Effect{lathe.ReadOnly, lathe.Idempotent, lathe.Writes} {
		if slices.Contains(w.Effects, e.String()) {
			out = append(out, e)
		}
	}
	return out
}

// checkWorkers reports missing settings of workers.
func (l *loader) checkWorkers() {
	for name, w := range text.ByName(l.cfg.Workers) {
		base := "workers." + name
		if w.Token.IsZero() {
			l.at(base+".token", "no token: what the workers show, as a reference")
		}
		if len(w.Tools) == 0 {
			l.at(base+".tools", `no tools: name those that the workers may serve, or ["*"] for all`)
		}
		for _, key := range w.Keys {
			if l.cfg.Serve.KeysFile != "" { // a key that was removed from the file must not keep the configuration from being loaded: Warnings
				break
			}
			l.known(base+".keys", "key", key, slices.Sorted(maps.Keys(l.cfg.Keys)))
		}
	}
}
