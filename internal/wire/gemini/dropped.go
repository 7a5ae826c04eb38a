package gemini

import (
	"slices"

	"github.com/lathe-run/lathe/internal/wire"
)

// dropped collects the paths of members that the wire cannot express, at most [wire.MaxDropped].
type dropped struct{ paths []string }

func (d *dropped) add(path string) {
	if len(d.paths) < wire.MaxDropped {
		d.paths = append(d.paths, path)
	}
}

func has(list []string, s string) bool { return slices.Contains(list, s) }
