package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// config is what lathe serves: a relay without tools, or with the calculator, in front of the model server.
func config(dir, upstream string, tools bool) (string, error) {
	builtin := "[]"
	if tools {
		builtin = "[calculator]"
	}
	text := "tools: {builtin: " + builtin + "}\nserve: {max_concurrent: 8192}\ntool_calling: {max_repeated_calls: 1000000}\nmodels:\n"
	for _, name := range []string{"t50", "t500", "p100", "p2000", "n50"} {
		text += fmt.Sprintf("  %s: {base_url: %q, client_timeout: 10m, max_attempts: 1}\n", name, upstream+"/v1")
	}
	path := filepath.Join(dir, fmt.Sprintf("lathe-%v.yaml", tools))
	return path, os.WriteFile(path, []byte(text), 0o600)
}
