package config

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
)

// Workers are processes elsewhere that execute tools for the daemon, and show the same token.
type Workers struct {
	Token          Ref
	Tools          []string // exact names, or the beginning of names with a * behind; nil: none
	Effects        []string // names of effects that are believed
	Keys           []string // names of keys; nil: all; empty: none
	MaxConcurrency int      // 0: each worker says how many
}

// keys returns the rows of one kind of workers, bound to w.
func (w *Workers) keys() []key {
	return []key{
		{"token", "", reference(&w.Token, isKey), "What its workers show, as a reference: `${NAME}` or `${file:path}`; 16 characters at least.", "key secret"},
		{"tools", "", listValue{&w.Tools, isToolHead}, "Tools that its workers may serve, by name, or by the beginning of names with a `*` behind; `\"*\"`: all.", "tool allow"},
		{"effects", "", listValue{&w.Effects, isEffect}, "Effects that are believed when a worker claims them for a tool: `read_only`, `idempotent`. What is not believed counts as `writes`.", "effect"},
		{"keys", "", grant(&w.Keys, isRuleName), "Keys whose runs have the tools of its workers, by name. Default: `[\"*\"]`, all. An empty list: none. For other keys the tools are not there.", "tenants"},
		{"max_concurrency", "0", count(&w.MaxConcurrency, 0, 1024), "Calls that one worker has at once; `0`: as many as it takes.", "concurrency"},
	}
}

// Believed returns the effects that are believed.
func (w *Workers) Believed() (out []lathe.Effect) {
	for _, e := range []lathe.Effect{lathe.ReadOnly, lathe.Idempotent, lathe.Writes} {
		for _, name := range w.Effects {
			if name == e.String() {
				out = append(out, e)
			}
		}
	}
	return out
}

func isToolHead(s string) error {
	if s == "*" {
		return nil
	}
	return isToolName(strings.TrimSuffix(s, "*"))
}

func isEffect(s string) error {
	switch s {
	case "read_only", "idempotent", "writes":
		return nil
	}
	return errors.New("an effect is read_only, idempotent or writes")
}

// checkWorkers says what is missing from workers.
func (l *loader) checkWorkers() {
	for _, name := range slices.Sorted(maps.Keys(l.cfg.Workers)) {
		w, base := l.cfg.Workers[name], "workers."+name
		if w.Token.IsZero() {
			l.at(base+".token", "no token: what the workers show, as a reference")
		}
		if len(w.Tools) == 0 {
			l.at(base+".tools", `no tools: name those that the workers may serve, or ["*"] for all`)
		}
		for _, key := range w.Keys {
			l.known(base+".keys", "key", key, slices.Sorted(maps.Keys(l.cfg.Keys)))
		}
	}
}
