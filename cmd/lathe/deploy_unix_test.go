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

	"github.com/lathe-run/lathe/config"
)

// A shippedDeployment is how a file of deploy/ starts the daemon.
type shippedDeployment struct {
	file  string
	state string   // the folder that the daemon may write to
	args  []string // of the daemon
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
	c := shippedDeployment{file: "Containerfile", state: "/data"}
	for _, m := range regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(regexp.MustCompile(`(?m)^CMD \[(.*)\]$`).FindStringSubmatch(image)[1], -1) {
		c.args = append(c.args, m[1])
	}
	c.env = strings.Fields(regexp.MustCompile(`(?m)^ENV (.*)$`).FindStringSubmatch(image)[1])
	if !strings.Contains(image, "VOLUME /data\n") {
		t.Error("the image has no VOLUME /data")
	}
	return []shippedDeployment{s, c}
}

// TestDeployWritesIntoStateFolder: each file that the configuration lets the daemon write by default lies in the folder
// that the shipped deployment makes writable.
func TestDeployWritesIntoStateFolder(t *testing.T) {
	t.Parallel()
	for _, d := range shippedDeployments(t) {
		cfg, err := config.Load("", &config.LoadOptions{Environ: d.env})
		if err != nil {
			t.Fatalf("%s: %v", d.file, err)
		}
		paths := map[string]string{"tools.pins": cfg.Tools.Pins, "tools.tokens": cfg.Tools.Tokens}
		for i, a := range d.args {
			if a == "--store" {
				paths["--store"] = strings.TrimPrefix(d.args[i+1], "sqlite:")
			}
		}
		if len(paths) != 3 {
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
// write into the state folder alone: definitions of MCP tools are pinned, and can be accepted when they have changed.
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
			put(filepath.Join(etc, "lathe.yaml"), `{"audit":{"path":"`+state+`/audit.jsonl"},"tools":{"mcp":{"notes":{"command":"`+filepath.Join(bin, "mcpserver")+`","args":["`+definitions+`"],"allowlist":["*"]}}}}`, 0o644)
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
			if _, err := os.Stat(filepath.Join(state, "pins.json")); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(filepath.Join(state, "audit.jsonl")); err != nil {
				t.Error(err)
			}
		})
	}
}
