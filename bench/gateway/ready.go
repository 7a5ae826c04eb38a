package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lathe-run/lathe/bench/internal/load"
	"github.com/lathe-run/lathe/bench/internal/proc"
	"github.com/lathe-run/lathe/internal/report"
)

// readyTools is how many tools of each kind a start has.
const readyTools = 100

// A start is a configuration of which the start is measured.
type start struct{ what, config string }

// ready measures, in alternation, how long lathe takes until it listens, and how much of that is processor time, without tools and with 100 of each
// kind. The binaries are those of the paths that are not empty.
func ready(dir string, rounds int, paths ...string) error {
	starts, err := readyConfigs(dir)
	if err != nil {
		return err
	}
	var t report.Table
	t.Row("program", "tools", "listens after ms", "CPU ms")
	for _, s := range starts {
		took, cpu := make([][]time.Duration, len(paths)), make([][]time.Duration, len(paths))
		for round := range rounds + 1 {
			for i, path := range paths {
				if path == "" {
					continue
				}
				p, err := proc.Start("lathe, "+s.what, 0, path, "serve", "--config", s.config, "--addr", "127.0.0.1:0")
				if err != nil {
					return err
				}
				used := p.CPU()
				p.Stop()
				if round > 0 { // the first one fills the caches of files and of compiled modules
					took[i], cpu[i] = append(took[i], p.Ready), append(cpu[i], used)
				}
			}
		}
		for i, path := range paths {
			if path != "" {
				t.Row(filepath.Base(path), s.what, fmt.Sprintf("%.1f", milliseconds(load.Median(took[i]))), fmt.Sprintf("%.1f", milliseconds(load.Median(cpu[i]))))
			}
		}
	}
	fmt.Printf("\n**ready, %d rounds, medians**\n\n", rounds)
	return t.WriteMarkdown(os.Stdout, "llrr")
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

// readyConfigs writes to dir the configurations whose starts are compared, with the files that they need, and returns a start for each.
func readyConfigs(dir string) ([]start, error) {
	const common = "models: {m: {base_url: \"http://127.0.0.1:9/v1\"}}\ntool_calling: {max_tools: 1000, max_tools_bytes: 1000000}\npolicy: {effects: {writes: allow}}\n"
	wasm := filepath.Join(dir, "wasm")
	if err := writeModules(wasm); err != nil {
		return nil, err
	}
	api := filepath.Join(dir, "api.json")
	if err := writeDocument(api); err != nil {
		return nil, err
	}
	var http strings.Builder
	for i := range readyTools {
		fmt.Fprintf(&http, "    item%d: {url: \"http://127.0.0.1:9/items/%d\", method: POST, description: \"Changes an item.\", allowlist: [\"*\"], effect: writes, "+
			"parameters: {name: {in: body, schema: {type: string}, required: true}, limit: {in: query, schema: {type: integer, minimum: 1}}}}\n", i, i)
	}
	var starts []start
	for _, s := range []start{
		{"none", "tools: {builtin: []}\n"},
		{"100 HTTP tools of the configuration", "tools:\n  builtin: []\n  egress: {private: [\"127.0.0.1\"]}\n  http:\n" + http.String()},
		{"100 operations of an OpenAPI document", fmt.Sprintf("tools:\n  builtin: []\n  egress: {private: [\"127.0.0.1\"]}\n  openapi: {catalogue: {file: %q, server: \"http://127.0.0.1:9\", tags: [all], allowlist: [\"*\"]}}\n", api)},
		{"100 WebAssembly modules", fmt.Sprintf("tools:\n  builtin: []\n  wasm: {dir: %q, cache_dir: %q}\n", wasm, filepath.Join(dir, "cache"))},
	} {
		path := filepath.Join(dir, fmt.Sprintf("ready-%d.yaml", len(starts)))
		if err := os.WriteFile(path, []byte(common+s.config), 0o600); err != nil {
			return nil, err
		}
		starts = append(starts, start{s.what, path})
	}
	return starts, nil
}

// writeModules writes copies of the module of the tests of package wasmtool, each with a manifest of its own.
func writeModules(dir string) error {
	const source = "../tool/wasmtool/testdata/sum"
	module, err := os.ReadFile(source + ".wasm")
	if err != nil {
		return fmt.Errorf("the bench runs in its own folder: %w", err)
	}
	manifest, err := os.ReadFile(source + ".yaml")
	if err != nil {
		return err
	}
	for _, d := range []string{dir, filepath.Join(filepath.Dir(dir), "cache")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	for i := range readyTools {
		name := fmt.Sprintf("sum%d", i)
		if err := os.WriteFile(filepath.Join(dir, name+".wasm"), module, 0o600); err != nil {
			return err
		}
		text := strings.Replace(string(manifest), "name: sum\n", "name: "+name+"\n", 1)
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// writeDocument writes an OpenAPI document.
func writeDocument(path string) error {
	type object = map[string]any
	paths, schemas := object{}, object{}
	for i := range readyTools {
		item := fmt.Sprintf("Item%d", i)
		paths[fmt.Sprintf("/items/%d/{id}", i)] = object{"post": object{
			"operationId": fmt.Sprintf("updateItem%d", i), "summary": "Changes an item.", "tags": []string{"all"},
			"parameters":  []any{object{"name": "id", "in": "path", "required": true, "schema": object{"type": "string"}}},
			"requestBody": object{"content": object{"application/json": object{"schema": object{"$ref": "#/components/schemas/" + item}}}},
			"responses":   object{"200": object{"description": "It was changed."}},
		}}
		schemas[item] = object{"type": "object", "required": []string{"name"}, "properties": object{"name": object{"type": "string"}, "price": object{"type": "number"}}}
	}
	b, err := json.Marshal(object{"openapi": "3.0.3", "info": object{"title": "Catalogue", "version": "1"}, "paths": paths, "components": object{"schemas": schemas}})
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o600)
}
