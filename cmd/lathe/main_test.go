package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/testkit/pgtest"
)

func TestMain(m *testing.M) {
	testscript.Main(pgtest.M(m), map[string]func(){"lathe": main, "mcpserver": mcpServer, "xdg-open": browse})
}

// TestScripts runs the scripts in testdata: each is one way to use the command. Beside the usual
// commands there are:
//
//	code N COMMAND…         runs a command that must end with exit code N
//	simserve [FLAGS]        starts `lathe sim serve` and sets $SIM to its base URL
//	gateway [FLAGS]          starts `lathe serve` and sets $LATHE to its address
//	interrupt FILE COMMAND… runs a command, interrupts it at its first line on stdout, wants exit
//	                        code 130 and writes its stdout to the file
//	mistakes FILE           runs commands with a mistake and grades their answers
//	stopchat                stops two answers of a chat with Ctrl-C
//	serve [FLAGS]           starts `lathe serve` and sets $LATHE to its address
//	signal NAME PATTERN     sends it HUP or TERM, and waits until it says what the pattern finds; what
//	                        it has said is then in serve.log
//	protected               starts an MCP server that wants a login, and sets $SEARCH_URL to it
//	gosource                sets the caches of Go, and $LATHE_CLONE to the sources
//	docs FILE               writes the files of a document, runs its commands and compares their answers
//
// The condition [all] is true if every test runs. Each script starts many processes, so a short run has only some of them, and other runs
// have those of a few documents, unless every test runs or -run names scripts of documents.
func TestScripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	files = slices.DeleteFunc(files, func(file string) bool {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		switch page, ofDocument := strings.CutPrefix(name, "docs_"); {
		case testing.Short():
			return !slices.Contains([]string{"config", "help", "json", "policy", "run", "serve", "tools"}, name)
		case ofDocument && !testdata.All() && !strings.Contains(flag.Lookup("test.run").Value.String(), "docs_"):
			return !slices.Contains([]string{"readme", "install", "first_tool", "gateway", "policy", "go_start", "tutorial_approvals",
				"tutorial_local_model", "tutorial_mcp", "tutorial_measure", "tutorial_team"}, page)
		}
		return false
	})
	docs, err := filepath.Abs(filepath.Join("..", "..", "docs"))
	if err != nil {
		t.Fatal(err)
	}
	modules, err := filepath.Abs(filepath.Join("..", "..", "tool", "wasmtool", "testdata"))
	if err != nil {
		t.Fatal(err)
	}
	guests, err := filepath.Abs(filepath.Join("..", "..", "guest", "testdata"))
	if err != nil {
		t.Fatal(err)
	}
	serving := &daemons{of: map[*testscript.TestScript]*served{}}
	testscript.Run(t, testscript.Params{
		Files:               files,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":      wantCode,
			"simserve":  serveSim,
			"gateway":   serveDaemon,
			"interrupt": interrupt,
			"stopchat":  stopChat,
			"mistakes":  runMistakes,
			"docs":      followDocument,
			"serve":     serving.serve,
			"serves":    serving.serveDocument,
			"signal":    serving.signal,
			"protected": serveProtected,
			"gosource":  useGo,
		},
		Condition: func(name string) (bool, error) {
			if name != "all" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			return testdata.All(), nil
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("DOCS", docs)
			e.Setenv("MODULES", modules) // WebAssembly tools
			e.Setenv("GUESTS", guests)
			e.Setenv("TZ", "UTC")
			return nil
		},
	})
}

func wantCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N command…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := exitCodeOf(ts, ts.Exec(args[1], args[2:]...))
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func exitCodeOf(ts *testscript.TestScript, err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	ts.Fatalf("%v", err)
	return -1
}

// start starts the command in the script's folder and environment.
func start(ts *testscript.TestScript, args []string) *exec.Cmd {
	path, err := exec.LookPath(args[0])
	ts.Check(err)
	cmd := exec.Command(path, args[1:]...)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "SIM"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	return cmd
}

var baseURL = regexp.MustCompile(`http://[0-9.:]+/v1`)

func serveSim(ts *testscript.TestScript, _ bool, args []string) {
	url := serve(ts, append([]string{"lathe", "sim", "serve", "--addr", "127.0.0.1:0"}, args...))
	ts.Setenv("SIM", url)
	ts.Setenv("SIMS", strings.Replace(url, "http:", "https:", 1)) // which it does not speak
}

func serveDaemon(ts *testscript.TestScript, _ bool, args []string) {
	url := serve(ts, append([]string{"lathe", "serve", "--addr", "127.0.0.1:0", "--log", "error"}, args...))
	ts.Setenv("LATHE", strings.TrimSuffix(url, "/v1"))
}

// serve starts a command that serves until the script ends, and returns the base URL that it says.
func serve(ts *testscript.TestScript, args []string) string {
	cmd := start(ts, args)
	stderr, err := cmd.StderrPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	ts.Defer(func() {
		_ = cmd.Process.Signal(os.Interrupt) // it may be gone
		_ = cmd.Wait()
	})
	lines := bufio.NewReader(stderr)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			ts.Fatalf("%s did not say where it serves: %v", strings.Join(args, " "), err)
		}
		if url := baseURL.FindString(line); url != "" {
			return url
		}
	}
}

func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: interrupt file command…")
	}
	cmd := start(ts, args[1:])
	stdout, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	r := bufio.NewReader(stdout)
	first, err := r.ReadString('\n')
	ts.Check(err)
	ts.Check(cmd.Process.Signal(os.Interrupt))
	var all strings.Builder
	all.WriteString(first)
	_, err = r.WriteTo(&all)
	ts.Check(err)
	if code := exitCodeOf(ts, cmd.Wait()); code != exitInterrupted {
		ts.Fatalf("exit code %d, want %d", code, exitInterrupted)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(all.String()), 0o644))
}
