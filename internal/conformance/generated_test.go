package conformance

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"testing"
)

// The client of the newer Anthropic library is the one that go generate makes of the client of the older one.
func TestGeneratedClientIsUpToDate(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("messages_go_v1_test.go")
	if err != nil {
		t.Fatal(err)
	}
	directive := regexp.MustCompile(`(?m)^//go:generate sh -c "(.+) >(\w+\.go)"$`).FindSubmatch(source)
	if directive == nil {
		t.Fatal("messages_go_v1_test.go has no line go:generate")
	}
	want, err := exec.Command("sh", "-c", string(directive[1])).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(string(directive[2])); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v: %s is not what go generate writes: run go generate in internal/conformance", err, directive[2])
	}
}
