package check

import (
	"os"
	"slices"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

// TestCompose: the library of compose accepts the file by its schema, and all that services refer to is there.
func TestCompose(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	load := func(text []byte) (*types.Project, error) {
		return loader.LoadWithContext(t.Context(), types.ConfigDetails{WorkingDir: t.TempDir(), Environment: types.Mapping{"LATHE_VERSION": "0.2.0"},
			ConfigFiles: []types.ConfigFile{{Filename: "compose.yaml", Content: text}}})
	}
	p, err := load(text)
	if err != nil {
		t.Fatal(err)
	}
	s := p.Services["lathe"]
	if s.Image != "lathe:0.2.0" || !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || s.DependsOn["postgres"].Condition != types.ServiceConditionHealthy || len(s.Ports) != 1 || s.Ports[0].HostIP != "127.0.0.1" {
		t.Errorf("%+v", s)
	}
	if p.Services["postgres"].HealthCheck == nil || s.HealthCheck == nil || len(p.Volumes) != 2 {
		t.Errorf("%+v", p)
	}
	for _, service := range p.Services {
		for _, secret := range service.Secrets {
			if _, ok := p.Secrets[secret.Source]; !ok {
				t.Errorf("%s has no secret %s", service.Name, secret.Source)
			}
		}
	}
	if _, err := load([]byte("services: {a: {image: b, restarts: always}}")); err == nil {
		t.Error("a word that compose does not have is accepted")
	}
}
