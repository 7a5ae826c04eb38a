package wasmtool

import (
	"fmt"
	"slices"
	"time"

	"github.com/lathe-run/lathe/internal/wasmrt"
)

// Most is the maximum of what a manifest may request. The zero value permits no grants and sets no other limit. Only values that the
// manifest sets are compared: a module is never refused because its manifest has no timeout or no memory_pages. Without memory_pages, a
// module gets the default or MemoryPages, whichever is less. Without a timeout, it gets the timeout of the runner, even if that is above
// Timeout.
type Most struct {
	Grants      []string      // permitted grants: "clock", "random", "read" (read-only folders) and "write"
	Timeout     time.Duration // 0: no limit
	MemoryPages int           // 0: no limit
	ModuleBytes int           // 0: no limit
}

// allow returns an error for the first grant or limit of the manifest that b does not allow, and sets the memory that it leaves open.
func (b *Most) allow(m *Manifest) error {
	if b == nil {
		return nil
	}
	asked := []string{}
	if m.Grants.Clock {
		asked = append(asked, "clock")
	}
	if m.Grants.Random {
		asked = append(asked, "random")
	}
	for i := range m.Grants.Files {
		if m.Grants.Files[i].Write {
			asked = append(asked, "write")
		} else {
			asked = append(asked, "read")
		}
	}
	for _, g := range asked {
		if !slices.Contains(b.Grants, g) {
			return fmt.Errorf("it asks for the grant %s, which tools.wasm.grants in lathe.yaml does not have", g)
		}
	}
	for _, l := range []struct {
		name, key   string
		asked, most int
	}{{"memory_pages", "max_memory", m.Limits.MemoryPages, b.MemoryPages}, {"module_bytes", "max_module", m.Limits.ModuleBytes, b.ModuleBytes}} {
		if l.most > 0 && l.asked > l.most {
			return fmt.Errorf("limits.%s: %d is more than the %d that tools.wasm.%s in lathe.yaml allows", l.name, l.asked, l.most, l.key)
		}
	}
	if m.Limits.MemoryPages == 0 && b.MemoryPages > 0 {
		m.Limits.MemoryPages = min(b.MemoryPages, int(wasmrt.Limits{}.WithDefaults().MemoryPages))
	}
	if b.Timeout > 0 && m.Limits.Timeout > b.Timeout {
		return fmt.Errorf("limits.timeout: %v is more than the %v that tools.wasm.max_timeout in lathe.yaml allows", m.Limits.Timeout, b.Timeout)
	}
	return nil
}
