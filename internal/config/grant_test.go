package config

import (
	"slices"
	"strings"
	"testing"
)

const grantingLists = `
keys:
  one: {key: "${KEY}", tools: LIST, models: LIST}
workers:
  red: {token: "${KEY}", tools: ["*"], keys: LIST}
tools:
  mcp:
    ev: {command: server, allowlist: ["*"], tools: LIST}
mcp:
  resources:
    docs: {folder: ., files: LIST}
`

// An empty list grants nothing, in every place where an unset one grants everything.
func TestEmptyListsGrantNothing(t *testing.T) {
	t.Parallel()
	opts := &LoadOptions{Environ: []string{"KEY=0123456789abcdef"}}
	lists := func(c *Config) map[string][]string {
		return map[string][]string{"keys.one.tools": c.Keys["one"].Tools, "keys.one.models": c.Keys["one"].Models,
			"workers.red.keys": c.Workers["red"].Keys, "tools.mcp.ev.tools": c.Tools.MCP["ev"].Tools, "mcp.resources.docs.files": c.MCP.Resources["docs"].Files}
	}
	for list, empty := range map[string]bool{"[]": true, `["*"]`: false} {
		c, err := parse("lathe.yaml", []byte(strings.ReplaceAll(grantingLists, "LIST", list)), opts)
		if err != nil {
			t.Fatal(err)
		}
		if warned := c.Warnings(); len(warned) > 0 {
			t.Errorf("%s: warnings about what was written on purpose: %v", list, warned)
		}
		for key, got := range lists(c) {
			if (got != nil && len(got) == 0) != empty || (got == nil) == empty {
				t.Errorf("%s: %s is read as %#v", key, list, got)
			}
		}
		// What `config show` prints says the same.
		again, err := parse("lathe.yaml", c.YAML(), opts)
		if err != nil {
			t.Fatal(err)
		}
		for key, got := range lists(again) {
			if (got == nil) == empty {
				t.Errorf("%s: %s is shown so that it is read as %#v", key, list, got)
			}
		}
	}
}

// Lists whose unset value has no word of its own: an empty one stays empty, an unset one unset.
func TestEmptyListsAreNotUnset(t *testing.T) {
	t.Parallel()
	for text, unset := range map[string]bool{
		"serve: {hosts: []}\ntools: {mcp: {m: {url: 'https://h/', allowlist: ['*'], oauth: {scopes: []}}}}": false,
		"tools: {mcp: {m: {url: 'https://h/', allowlist: ['*']}}}":                                          true,
	} {
		c, err := parse("lathe.yaml", []byte(text), &LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		again, err := parse("lathe.yaml", c.YAML(), &LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []*Config{c, again} {
			if (c.Serve.Hosts == nil) != unset || (c.Tools.MCP["m"].OAuth.Scopes == nil) != unset {
				t.Errorf("%s: hosts %#v, scopes %#v", text, c.Serve.Hosts, c.Tools.MCP["m"].OAuth.Scopes)
			}
		}
		if warned := c.Warnings(); len(warned) > 0 {
			t.Errorf("%s: warnings %v", text, warned)
		}
	}
}

// A taint guard that no label feeds is warned about where calls that change something need no approval.
func TestIdleTaintIsWarnedAbout(t *testing.T) {
	t.Parallel()
	const tools = "tools: {http: {x: {url: 'https://h/', allowlist: ['*']}}}\n"
	for text, want := range map[string]bool{
		tools: false, // writes are asked for
		tools + "policy: {effects: {writes: allow}}":                                            true,
		tools + "policy: {tools: {x: allow}}":                                                   true,
		tools + "policy: {rules: {r: {decision: allow, tool: x}}}":                              true,
		tools + "policy: {effects: {writes: allow}, labels: {x: [reads_untrusted]}}":            false,
		tools + "policy: {effects: {writes: allow}, labels: {x: [reads_private]}}":              true,
		tools + "policy: {effects: {writes: allow}, taint: allow}":                              false,
		"policy: {effects: {writes: allow}}":                                                    false, // nothing reaches outside
		"tools: {mcp: {m: {command: s, allowlist: ['*']}}}\npolicy: {effects: {writes: allow}}": true,
	} {
		c, err := parse("lathe.yaml", []byte(text), &LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.ContainsFunc(c.Warnings(), func(p Problem) bool { return p.Key == "policy.taint" }); got != want {
			t.Errorf("%s: warned %t, want %t", text, got, want)
		}
	}
}

// A schema that is an empty mapping is any value, and an unset one is not shown as one.
func TestEmptySchemaIsNotUnset(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{", schema: {}": "{}", "": ""} {
		c, err := parse("lathe.yaml", []byte("tools: {http: {x: {url: 'https://h/', allowlist: ['*'], parameters: {a: {in: query"+schema+"}}}}}"), &LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		again, err := parse("lathe.yaml", c.YAML(), &LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []*Config{c, again} {
			if got := string(c.Tools.HTTP["x"].Parameters["a"].Schema); got != want {
				t.Errorf("schema%q is read as %q, want %q", schema, got, want)
			}
		}
	}
}
