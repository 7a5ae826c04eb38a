package structure

import (
	"errors"
	"go/ast"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The test script does nothing for an option that it does not know, and names those that it has.
func TestScriptRefusesUnknownOptions(t *testing.T) {
	inRoot(t)
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	for _, options := range [][]string{{"--bogus"}, {"--no-install", "extra"}, {"--no-instal"}, {""}} {
		out, err := exec.Command(bash, append([]string{"./test"}, options...)...).CombinedOutput()
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok || exit.ExitCode() != 2 || !strings.Contains(string(out), "unknown option") || strings.Contains(string(out), "==") {
			t.Errorf("./test %q: %v\n%s", options, err, out)
		}
	}
	for _, option := range []string{"--help", "-h"} {
		out, err := exec.Command(bash, "./test", option).CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), "usage: ./test") || !strings.Contains(string(out), "--no-install") {
			t.Errorf("./test %s: %v\n%s", option, err, out)
		}
	}
}

// A test in a file that the race detector leaves out runs in both rounds, in which its package has the race detector.
func TestScriptRunsWhatTheRaceDetectorLeavesOut(t *testing.T) {
	inRoot(t)
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	script, err := os.ReadFile("test")
	if err != nil {
		t.Fatal(err)
	}
	both, _, _ := strings.Cut(string(script), "\nif ! $all; then\n")
	if !strings.Contains(both, `stage "go test, what the race detector leaves out" without_race`) {
		t.Error("./test does not run the tests with the build constraint !race before the rounds part")
	}
	_, function, _ := strings.Cut(both, "\nwithout_race() {")
	function, _, _ = strings.Cut(function, "\n}\n")
	out, err := exec.Command(bash, "-euo", "pipefail", "-c", "go() { case $1 in list) command go \"$@\" ;; *) printf '%s\\n' \"$*\" ;; esac; }\nwithout_race() {"+function+"\n}\nwithout_race").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "|TestShortRequestsAllocateLittle|") || !strings.Contains(string(out), "|TestRunnerAllocations|") || !strings.Contains(string(out), "/server ") {
		t.Errorf("it runs %s, %v", out, err)
	}
}

// A test that counts allocations says so in its first statement: the race detector would change what it counts, and the script
// finds it by those words.
func TestCountedAllocationsAreWithoutRace(t *testing.T) {
	inRoot(t)
	found := 0
	for _, f := range goFiles(t) {
		if !f.isTest || f.apart || strings.Contains(string(f.src), "\n//go:build !race\n") || strings.HasPrefix(string(f.src), "//go:build !race\n") {
			continue
		}
		for _, d := range f.file.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil || !mentions(fn.Body, "AllocsPerRun") {
				continue
			}
			if found++; !mentions(fn.Body.List[0], "CountsAllocations") {
				t.Errorf("%s: %s counts allocations: its first statement is not testdata.CountsAllocations(t)", f.name, fn.Name.Name)
			}
		}
	}
	if found == 0 {
		t.Error("no test counts allocations")
	}
}

// mentions reports whether n selects name.
func mentions(n ast.Node, name string) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		found = found || ok && sel.Sel.Name == name
		return !found
	})
	return found
}
