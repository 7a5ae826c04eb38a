package preset

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lathe-run/lathe/internal/text"
)

// unknown returns an error that suggests the valid name for an unknown one: the name of its alias in others, or the nearest of names;
// else it lists all names.
func unknown(what, name string, names []string, others map[string]string) error {
	folded := strings.NewReplacer("-", "_", ".", "_", " ", "_").Replace(strings.ToLower(name))
	if right, ok := others[folded]; ok {
		return fmt.Errorf("%s %.64q is called %s here", what, name, right)
	}
	for _, right := range names {
		if right == folded || right == strings.ReplaceAll(folded, "_", "") {
			return fmt.Errorf("%s %.64q is called %s here", what, name, right)
		}
	}
	if best := text.Nearest(folded, names); best != "" {
		return fmt.Errorf("unknown %s %.64q, did you mean %s?", what, name, best)
	}
	return fmt.Errorf("unknown %s %.64q (%s)", what, name, strings.Join(slices.Sorted(slices.Values(names)), ", "))
}
