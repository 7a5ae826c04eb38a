package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func Example() {
	main()
	// Output: weather says: 21 °C and dry in Oslo.
}

// The README's first Go block is the program without its imports.
func TestReadmeShowsThisProgram(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	_, program, _ := strings.Cut(read("main.go"), "\n)\n\n")
	_, block, _ := strings.Cut(read(filepath.Join("..", "..", "README.md")), "\n```go\n")
	block, _, _ = strings.Cut(block, "```\n")
	if block == "" || block != program {
		t.Errorf("README.md shows\n%s\nand examples/quickstart/main.go has\n%s", block, program)
	}
}
