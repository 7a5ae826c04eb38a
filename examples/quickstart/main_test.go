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

// The README's Go block is the body of main.
func TestReadmeShowsThisProgram(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	_, body, _ := strings.Cut(read("main.go"), "\nfunc main() {\n")
	body = strings.TrimSuffix(body, "}\n")
	body = strings.ReplaceAll("\n"+body, "\n\t", "\n")
	_, block, _ := strings.Cut(read(filepath.Join("..", "..", "README.md")), "\n```go\n")
	block, _, _ = strings.Cut(block, "```\n")
	if block == "" || "\n"+block != body {
		t.Errorf("README.md shows\n%s\nand examples/quickstart/main.go has%s", block, body)
	}
}
