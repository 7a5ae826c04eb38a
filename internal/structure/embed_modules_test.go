package structure

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// What a Go user embeds pulls in few outside modules. The list is exact, so that a new one is a
// decision and not an accident.
func TestEmbeddingPullsInFewModules(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("go", "list", "-deps", "-json=Module", ".", "./provider", "./tool", "./loop")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	want := []string{
		"github.com/go-json-experiment/json",
		"github.com/google/jsonschema-go",
	}
	var got []string
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for dec.More() {
		var p struct{ Module *struct{ Path string } }
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		if p.Module != nil && p.Module.Path != module && !slices.Contains(got, p.Module.Path) {
			got = append(got, p.Module.Path)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("outside modules of lathe, provider, tool and loop:\n got %v\nwant %v", got, want)
	}
}
