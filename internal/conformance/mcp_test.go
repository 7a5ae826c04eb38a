package conformance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// mcpRig is the command with the public MCP servers in its configuration.
type mcpRig struct {
	t        *testing.T
	bin, dir string
}

func newMCPRig(t *testing.T) *mcpRig {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not installed")
	}
	modules, err := filepath.Abs(filepath.Join("node_modules", "@modelcontextprotocol"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(modules, "server-everything")); err != nil {
		t.Skip("node_modules is missing: run npm ci in internal/conformance")
	}
	r := &mcpRig{t: t, dir: t.TempDir()}
	if r.bin, err = lathe(); err != nil {
		t.Fatal(err)
	}
	r.write("data/note.txt", "the answer is 42\n")
	r.write("lathe.yaml", fmt.Sprintf(`
tools:
  mcp:
    all:
      command: node
      args: [%q]
      allowlist: ["*"]
      effects: {echo: read_only, get-sum: read_only, get-structured-content: read_only, get-tiny-image: read_only, trigger-long-running-operation: read_only}
    files:
      command: node
      args: [%q, %q]
      allowlist: ["*"]
      effects: {read_text_file: read_only}
`, filepath.Join(modules, "server-everything", "dist", "index.js"), filepath.Join(modules, "server-filesystem", "dist", "index.js"), filepath.Join(r.dir, "data")))
	return r
}

func (r *mcpRig) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *mcpRig) command(args ...string) *exec.Cmd {
	cmd := exec.Command(r.bin, args...)
	cmd.Dir = r.dir
	return cmd
}

func TestPublicMCPServers(t *testing.T) {
	r := newMCPRig(t)
	out, err := r.command("tools", "doctor").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "mcp:all: ready") || !strings.Contains(string(out), "mcp:files: ready") {
		t.Fatalf("tools doctor: %v\n%s", err, out)
	}
	r.write("turns.txt", fmt.Sprintf(`-- turn --
call: all__get-sum {"a":7,"b":35}
-- turn --
expect: 42
call: files__read_text_file {"path":%q}
-- turn --
expect: the answer is 42
call: files__read_text_file {"path":"/etc/passwd"}
-- turn --
expect: Access denied
call: all__get-tiny-image {}
-- turn --
expect: "mimeType":"image/png"
call: all__get-structured-content {"location":"New York"}
-- turn --
expect: "temperature"
call: files__write_file {"path":"x","content":"x"}
-- turn --
expect: policy_denied
text: Done.
`, filepath.Join(r.dir, "data", "note.txt")))
	out, err = r.command("run", "-q", "--model", "sim/script", "--script", "turns.txt", "Go.").CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "Done." {
		t.Errorf("%v\n%s", err, out)
	}
}

// A server that is killed in the middle of a call restarts, and the run reports the unknown outcome.
func TestPublicMCPServerIsKilled(t *testing.T) {
	r := newMCPRig(t)
	if _, err := os.Stat("/proc/self/task"); err != nil {
		t.Skip("there is no /proc in which to find the server's process")
	}
	r.write("turns.txt", `-- turn --
call: all__trigger-long-running-operation {"duration":60,"steps":120}
-- turn --
expect: "code":"unavailable"
call: all__echo {"message":"still here"}
-- turn --
expect: still here
text: Back again.
`)
	cmd := r.command("run", "--json", "-q", "--model", "sim/script", "--script", "turns.txt", "Go.")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var events []string
	killed := 0
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct{ Type string }
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		events = append(events, lines.Text())
		if e.Type == "ToolCallPlanned" && killed == 0 {
			killed = r.kill(cmd.Process.Pid, "server-everything")
		}
	}
	if err := cmd.Wait(); err != nil || killed == 0 {
		t.Errorf("killed %d: %v\n%s\n%s", killed, err, stderr.String(), strings.Join(events, "\n"))
	}
	if last := events[len(events)-1]; !strings.Contains(last, "Back again.") {
		t.Errorf("the run ended with %s", last)
	}
}

// kill ends the child of a process whose command line holds a word.
func (r *mcpRig) kill(parent int, word string) int {
	r.t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, list := range lists {
		b, err := os.ReadFile(list)
		if err != nil {
			continue // a thread that has ended
		}
		for _, f := range strings.Fields(string(b)) {
			line, err := os.ReadFile("/proc/" + f + "/cmdline")
			if err != nil || !strings.Contains(string(line), word) {
				continue
			}
			pid, err := strconv.Atoi(f)
			if err != nil {
				r.t.Fatal(err)
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				r.t.Fatal(err)
			}
			return pid
		}
	}
	return 0
}
