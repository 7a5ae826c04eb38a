package structure

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
)

// The test script does nothing for an option that it does not know, and names those that it has.
func TestScriptRefusesUnknownOptions(t *testing.T) {
	t.Parallel()
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
