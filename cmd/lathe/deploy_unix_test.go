//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/lathe-run/lathe/internal/config"
)

// A shippedDeployment is how a file of deploy/ starts the gateway.
type shippedDeployment struct {
	file  string
	state string   // the folder that the gateway may write to
	args  []string // of the gateway
	env   []string
}

func shippedDeployments(t *testing.T) []shippedDeployment {
	t.Helper()
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join("..", "..", "deploy", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	unit, image := read("lathe.service"), read("Containerfile")
	s := shippedDeployment{file: "lathe.service", state: "/var/lib/lathe"}
	s.args = strings.Fields(regexp.MustCompile(`(?m)^ExecStart=\S+ (.*)$`).FindStringSubmatch(unit)[1])
	for _, m := range regexp.MustCompile(`(?m)^Environment=(.*)$`).FindAllStringSubmatch(unit, -1) {
		s.env = append(s.env, strings.Fields(m[1])...)
	}
	if !strings.Contains(unit, "StateDirectory=lathe\n") {
		t.Error("the unit has no StateDirectory=lathe")
	}
	c := shippedDeployment{file: "Containerfile", state: "/var/lib/lathe"}
	for _, m := range regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(regexp.MustCompile(`(?m)^CMD \[(.*)\]$`).FindStringSubmatch(image)[1], -1) {
		c.args = append(c.args, m[1])
	}
	c.env = strings.Fields(regexp.MustCompile(`(?m)^ENV (.*)$`).FindStringSubmatch(image)[1])
	if !strings.Contains(image, "VOLUME /var/lib/lathe\n") {
		t.Error("the image has no VOLUME /var/lib/lathe")
	}
	return []shippedDeployment{s, c}
}

// TestDeployWritesIntoStateFolder: the files that the gateway writes lie in the folder that the shipped deployment makes
// writable.
func TestDeployWritesIntoStateFolder(t *testing.T) {
	t.Parallel()
	for _, d := range shippedDeployments(t) {
		cfg, err := config.Load("", &config.LoadOptions{Environ: d.env})
		if err != nil {
			t.Fatalf("%s: %v", d.file, err)
		}
		if cfg.StateDir != d.state {
			t.Errorf("%s: state_dir is %q, want %s", d.file, cfg.StateDir, d.state)
		}
		paths := map[string]string{}
		for i, a := range d.args {
			if a == "--store" {
				paths["--store"] = strings.TrimPrefix(d.args[i+1], "sqlite:")
			}
		}
		if len(paths) != 1 {
			t.Errorf("%s names no store", d.file)
		}
		for key, path := range paths {
			if !strings.HasPrefix(path, d.state+"/") {
				t.Errorf("%s: %s is %s, want a file in %s", d.file, key, path, d.state)
			}
		}
	}
}

// TestDeployAcceptsTools runs the commands of the shipped deployments, with their folders elsewhere, as a user who can
// write into the state folder alone: definitions of MCP tools are pinned, and can be accepted when they have changed; the store is
// backed up.
func TestDeployAcceptsTools(t *testing.T) {
	t.Parallel()
	mcpserver, err := exec.LookPath("mcpserver")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range shippedDeployments(t) {
		t.Run(d.file, func(t *testing.T) {
			t.Parallel()
			root, err := os.MkdirTemp("", "lathe-deploy")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = os.Chmod(filepath.Join(root, "etc"), 0o755)
				_ = os.RemoveAll(root)
			})
			etc, state, bin := filepath.Join(root, "etc"), filepath.Join(root, "state"), filepath.Join(root, "bin")
			for _, dir := range []string{etc, state, bin} {
				if err := os.Mkdir(dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			put := func(path, text string, mode os.FileMode) {
				t.Helper()
				if err := os.WriteFile(path, []byte(text), mode); err != nil {
					t.Fatal(err)
				}
			}
			for _, name := range []string{lathePath(t), mcpserver} {
				b, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				put(filepath.Join(bin, filepath.Base(name)), string(b), 0o755)
			}
			definitions := filepath.Join(etc, "tools.json")
			put(definitions, `[{"name":"read","description":"one","inputSchema":{"type":"object"}}]`+"\n", 0o644)
			put(filepath.Join(etc, "lathe.yaml"), `{"audit":{"path":"audit.jsonl"},"tools":{"mcp":{"notes":{"command":"`+filepath.Join(bin, "mcpserver")+`","args":["`+definitions+`"],"allowlist":["*"]}}}}`, 0o644)
			elsewhere := strings.NewReplacer("/etc/lathe", etc, d.state, state, "/var/cache/lathe", state)
			lathe := func(args ...string) (string, error) {
				cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "lathe"), append([]string{"--config", etc + "/lathe.yaml"}, args...)...)
				cmd.Dir = "/"
				cmd.Env = []string{"PATH=" + bin, "HOME=/nonexistent"}
				for _, v := range d.env {
					cmd.Env = append(cmd.Env, elsewhere.Replace(v))
				}
				if os.Getuid() == 0 {
					cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
				}
				out, err := cmd.CombinedOutput()
				return string(out), err
			}
			for dir, mode := range map[string]os.FileMode{root: 0o755, etc: 0o555} {
				if err := os.Chmod(dir, mode); err != nil {
					t.Fatal(err)
				}
			}
			if os.Getuid() == 0 {
				if err := os.Chown(state, 65532, 65532); err != nil {
					t.Fatal(err)
				}
			}
			want := func(text string, args ...string) {
				t.Helper()
				out, err := lathe(args...)
				if !strings.Contains(out, text) {
					t.Errorf("lathe %s: %v, want %q:\n%s", strings.Join(args, " "), err, text, out)
				}
			}
			want("ready, 1 tool", "tools", "doctor")
			put(definitions, `[{"name":"read","description":"two","inputSchema":{"type":"object"}}]`+"\n", 0o644)
			want("is blocked", "tools", "doctor")
			want("not offered, because the definition is not accepted: notes__read (", "run", "-q=false", "--store", "sqlite:"+state+"/runs.db", "hello")
			want("", "tools", "accept", "notes__read")
			want("ready, 1 tool", "tools", "doctor")
			want("wrote "+state+"/b.db: 1 run, ", "store", "backup", "--store", "sqlite:"+state+"/runs.db", state+"/b.db")
			want("ok", "audit", "verify")
			for _, name := range []string{"lathe.pins.json", "audit.jsonl", "b.db"} {
				if _, err := os.Stat(filepath.Join(state, name)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestSystemdReadsTheUnit: systemd accepts each line of the unit and of its drop-in, with the program where the unit has it.
func TestSystemdReadsTheUnit(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"lathe.service", "lathe.service.d/credentials.conf"} {
		b, err := os.ReadFile(filepath.Join("..", "..", "deploy", name))
		if err != nil {
			t.Fatal(err)
		}
		unit := strings.ReplaceAll(string(b), "/usr/local/bin/lathe", lathePath(t))
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(unit), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", "--recursive-errors=no", filepath.Join(dir, "lathe.service")).CombinedOutput()
	if err != nil || strings.Contains(string(out), dir) || strings.Contains(string(out), "lathe.service") {
		t.Errorf("%v\n%s", err, out)
	}
	// A line that systemd does not know is found, so that the test can fail.
	unit := filepath.Join(dir, "wrong.service")
	if err := os.WriteFile(unit, []byte("[Service]\nExecStart=/bin/true\nNonsense=yes\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, _ := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", "--recursive-errors=no", unit).CombinedOutput(); !strings.Contains(string(out), "Nonsense") {
		t.Errorf("systemd-analyze does not report an unknown line: %s", out)
	}
}
