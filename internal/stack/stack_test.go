package stack_test

import (
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/stack"
)

func fails(secret string) { panic(secret) }

// The stack begins at the panic: neither the deferred function nor the value of the panic is in it.
func TestFunctionsBeginAtThePanic(t *testing.T) {
	t.Parallel()
	var got string
	func() {
		defer func() {
			_ = recover()
			got = stack.Functions()
		}()
		fails("s3cret")
	}()
	lines := strings.Split(got, "\n")
	if !strings.HasPrefix(lines[0], "runtime.gopanic:") || !strings.HasPrefix(lines[1], "github.com/lathe-run/lathe/internal/stack_test.fails:") {
		t.Errorf("the stack begins with %q", lines[:2])
	}
	if strings.Contains(got, "s3cret") {
		t.Errorf("the stack holds the value of the panic: %s", got)
	}
}
