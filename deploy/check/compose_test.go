package check

import (
	"fmt"
	"os"
	"slices"
	"strings"
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

// TestBenchmark: the service of the public benchmark loads beside a model server of the name that it uses, and listens on the port that its
// gateway.env names.
func TestBenchmark(t *testing.T) {
	t.Parallel()
	const dir = "../benchmark/lathe/"
	text, err := os.ReadFile(dir + "compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	p, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{WorkingDir: dir, Environment: types.Mapping{"LATHE_IMAGE": "lathe:1"},
		ConfigFiles: []types.ConfigFile{{Filename: "compose.yml", Content: text}, {Filename: "mock.yml", Content: []byte("services: {mock: {image: mock}}")}}},
		func(o *loader.Options) { o.SetProjectName("bench", true); o.Profiles = []string{"lathe"} })
	if err != nil {
		t.Fatal(err)
	}
	contract, err := os.ReadFile(dir + "gateway.env")
	if err != nil {
		t.Fatal(err)
	}
	s := p.Services["lathe"]
	if s.Image != "lathe:1" || len(s.Ports) != 1 || !strings.Contains(string(contract), "\nPORT="+fmt.Sprint(s.Ports[0].Target)+" ") || !slices.Contains(s.Command, fmt.Sprintf("0.0.0.0:%d", s.Ports[0].Target)) {
		t.Errorf("%+v", s)
	}
	if len(s.Volumes) != 1 || !slices.Contains(s.Command, s.Volumes[0].Target) {
		t.Errorf("%+v is not the configuration of %q", s.Volumes, s.Command)
	}
	if _, err := os.Stat(s.Volumes[0].Source); err != nil {
		t.Error(err)
	}
}
