package structure

import (
	"slices"
	"testing"
)

// What a Go user embeds pulls in few outside modules. The list is exact, so that a new one is a
// decision and not an accident.
func TestEmbeddingPullsInFewModules(t *testing.T) {
	inRoot(t)
	want := []string{
		"github.com/dlclark/regexp2/v2",
		"github.com/go-json-experiment/json",
		"github.com/google/jsonschema-go",
		"github.com/santhosh-tekuri/jsonschema/v6",
		"golang.org/x/text",
	}
	var got []string
	for _, p := range needed(t, "", "provider", "tool", "loop") {
		if p.Module != nil && !p.own() && !slices.Contains(got, p.Module.Path) {
			got = append(got, p.Module.Path)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("outside modules of lathe, provider, tool and loop:\n got %v\nwant %v", got, want)
	}
}
