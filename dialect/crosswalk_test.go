package dialect_test

import (
	"os"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
)

// The section of tools that docs/internals/crosswalk.md shows is the one that the dialect tags writes.
func TestCrosswalkShowsTheSectionOfTools(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/internals/crosswalk.md")
	if err != nil {
		t.Fatal(err)
	}
	section, _, _ := strings.Cut(string(lookup(t, "tags").AppendTools(nil, []*lathe.ToolSpec{{Name: "add", Description: "Adds two numbers.",
		Schema: []byte(`{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}}}`)}})), "To call")
	if !strings.Contains(string(page), section) {
		t.Errorf("docs/internals/crosswalk.md does not have:\n%s", section)
	}
}
