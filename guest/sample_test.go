package guest_test

import (
	"bytes"
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/sum.wasm anew")

// testdata/sum.wasm is the sample of the contract, as a module that was built an instruction at a time.
func TestSampleIsBuiltFromItsSource(t *testing.T) {
	t.Parallel()
	g := newGuest()
	sumTool(g, 3)
	wasm := (&flow{prompt: sumPrompt, flags: 3, functions: map[int]string{3: sumJSON}, params: []any{"model", "gpt-4o-mini", "max_total_tool_calls", 4, "max_iterations", 4}}).build(g)
	const file = "testdata/sum.wasm"
	if *update {
		if err := os.WriteFile(file, wasm, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(kept, wasm) {
		t.Errorf("%s is not what its source builds: run the tests with -update", file)
	}
}
