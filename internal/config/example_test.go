package config_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/lathe-run/lathe/internal/config"
)

func ExampleLoad() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "lathe.yaml")
	file := "models:\n  local:\n    base_url: http://localhost:11434/v1\n    model: qwen3\ntool_calling:\n  max_iterations: 4\n"
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		panic(err)
	}
	c, err := config.Load(path, &config.LoadOptions{
		Environ:   []string{"LATHE_TOOL_CALLING_MAX_DEPTH=0"},
		Overrides: []config.Override{{From: "--max-iterations", Key: "tool_calling.max_iterations", Value: "2"}},
	})
	if err != nil {
		panic(err)
	}
	m, err := c.Model("")
	fmt.Println(m.Model, m.BaseURL, err)
	fmt.Println(c.Limits().MaxIterations, c.Origin("tool_calling.max_iterations"), c.Origin("tool_calling.max_depth"))

	_, err = config.Load("", &config.LoadOptions{Environ: []string{"LATHE_TOOL_CALLING_TOOL_USE_MODE=required"}})
	for _, p := range config.ProblemsOf(err) {
		fmt.Println(p)
	}
	// Output:
	// qwen3 http://localhost:11434/v1 <nil>
	// 2 --max-iterations LATHE_TOOL_CALLING_MAX_DEPTH
	// LATHE_TOOL_CALLING_TOOL_USE_MODE: "required" is called "enforced" here (relaxed, enforced, disabled)
}
