package config

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/secret"
)

const canary = "canary-7f3a-4d2e0"

func write(t testing.TB, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// However a configuration is printed, and whatever is wrong with it, no secret shows.
func TestSecretsDoNotShow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "key", canary+"\n")
	path := write(t, dir, "lathe.yaml", `models:
  a:
    key: ${KEY}
    base_url: http://${HOST}/v1
    headers:
      Authorization: Bearer canary-7f3a-4d2e0
      X-B: Bearer ${KEY}
  b:
    key: ${file:key}
telemetry:
  args_preview_hash: keyed
  args_preview_key: ${KEY}
`)
	opts := &LoadOptions{Environ: []string{"KEY=" + canary, "HOST=" + canary}}
	c, err := Load(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	type holder struct{ c *Config }
	asJSON, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for how, shown := range map[string]string{
		"%v": fmt.Sprintf("%v", *c), "%+v": fmt.Sprintf("%+v", *c.Models["a"]), "%#v": fmt.Sprintf("%#v", *c.Models["a"]),
		"%s": fmt.Sprintf("%s", c.Models["a"].Headers), "%x": fmt.Sprintf("%x", c.Models["a"].Key), "in a struct": fmt.Sprintf("%+v", holder{c}),
		"unexported": fmt.Sprintf("%+v", struct{ m Model }{*c.Models["a"]}), "JSON": string(asJSON), "YAML": string(c.YAML()),
	} {
		if strings.Contains(shown, canary) || strings.Contains(shown, fmt.Sprintf("%x", canary)) {
			t.Errorf("%s shows a secret: %s", how, shown)
		}
	}
	for name, got := range map[string]string{
		"key": c.Models["a"].Key.Reveal(), "file": c.Models["b"].Key.Reveal(), "hash": c.Telemetry.ArgsPreviewKey.Secret().Reveal(),
		"header": strings.TrimPrefix(c.Models["a"].Headers["Authorization"].Reveal(), "Bearer "), "header reference": strings.TrimPrefix(c.Models["a"].Headers["X-B"].Reveal(), "Bearer "),
		"address": strings.TrimSuffix(strings.TrimPrefix(c.Models["a"].BaseURL.Reveal(), "http://"), "/v1"),
	} {
		if got != canary {
			t.Errorf("%s: got %q, want the canary", name, got)
		}
	}
	if got := c.Models["a"].Headers["X-B"].String(); got != "Bearer ${KEY}" {
		t.Errorf("a reference shows as %q", got)
	}

	for name, content := range map[string]string{
		"a key written out":      "models: {a: {key: canary-7f3a-4d2e0}}",
		"a bad address":          "models: {a: {base_url: canary-7f3a-4d2e0}}",
		"a bad address behind":   "models: {a: {base_url: '${KEY}'}}",
		"an address with a user": "models: {a: {base_url: 'http://canary-7f3a-4d2e0:x@localhost'}}",
		"a hash key written out": "telemetry: {args_preview_key: canary-7f3a-4d2e0}",
		"a reference cut off":    "models: {a: {key: 'canary-7f3a-4d2e0 ${'}}",
	} {
		_, err := Load(write(t, t.TempDir(), "lathe.yaml", content), opts)
		if err == nil || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: got %v, want an error without the secret", name, err)
		}
	}
}

// A reference to a file is read anew where that is asked for, and nothing else is.
func TestFreshReferences(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := write(t, dir, "key", "first\n")
	var whole, part, env Ref
	r := resolver{env: map[string]string{"KEY": "first"}, dir: dir}
	for ref, text := range map[*Ref]string{&whole: "${file:key}", &part: "a ${file:key}", &env: "${KEY}"} {
		*ref = Ref{value: secret.New(text)}
		if err := r.resolve(ref, isKey); err != nil {
			t.Fatal(err)
		}
	}
	write(t, dir, "key", "second\n")
	for ref, want := range map[*Ref]string{&whole: "second", &part: "a first", &env: "first"} {
		if got, err := ref.Fresh(); got.Reveal() != want || err != nil {
			t.Errorf("%s: got %q, %v", ref, got.Reveal(), err)
		}
	}
	if whole.Reveal() != "first" {
		t.Errorf("the value has changed: %s", whole.Reveal())
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if got, err := whole.Fresh(); err == nil || !strings.HasPrefix(err.Error(), "${file:key}: ") || strings.Contains(err.Error(), dir) {
		t.Errorf("got %v, %v", got, err)
	}
}

// What YAML writes is a file that says the same.
func TestYAMLRoundTrip(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := Default()
	m := newModel("m", "openai")
	c.Models["m"] = m
	rows := c.rows()
	opts := &LoadOptions{Environ: []string{"KEY=secret"}}
	for _, r := range append(rows, rowsOf(reflect.ValueOf(m))...) {
		change(t, r.kind, r.v)
	}
	c.Models = map[string]*Model{"m": m}
	// What keys say together: a server is a program, and shows its output.
	c.DefaultModel = "sim/x"
	c.Tools.MCP["name"].Command, c.Tools.MCP["name"].Args, c.Tools.MCP["name"].Allowlist = "server", []string{"-v", "a b", "-v"}, []string{"*"}
	c.Tools.Run["name"].Description = "An agent."
	c.Tools.Temporal["name"].Description, c.Tools.Temporal["name"].Queue, c.Tools.Temporal["name"].Allowlist = "A tool.", "queue", []string{"*"}
	c.MCP.Resources["name"].Text, c.MCP.Prompts["name"].Text = "text", "text"
	c.Secrets.Values["name"] = Ref{shown: "${KEY}", value: secret.New("secret")}
	c.Workers["name"].Token, c.Workers["name"].Tools = Ref{shown: "${KEY}", value: secret.New("secret")}, []string{"*"}
	c.Keys["name"].SHA256, c.Serve.OIDC.Profiles, c.Serve.OIDC.DefaultProfile = "", []string{"value=name"}, "name"
	write(t, dir, "7", "client "+strings.Repeat("a", 64)+" name\n") // serve.keys_file
	want := string(c.YAML())
	back, err := Load(write(t, dir, "lathe.yaml", want), opts)
	if err != nil {
		t.Fatalf("%v\n%s", err, want)
	}
	if got := string(back.YAML()); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	for i, r := range back.rows() {
		if got, want := textOf(r.kind, r.v), textOf(r.kind, rows[i].v); got != want {
			t.Errorf("%s: got %s, want %s", r.path, got, want)
		}
	}
}

func FuzzLoad(f *testing.F) {
	for _, s := range []string{
		"", "models: {a: {key: '${KEY}', headers: {X-A: b}}}", "tool_calling:\n  max_iterations: 3\n  retention: {max_output_bytes: 1KiB}\n",
		"tools: {builtin: [a, b]}", "policy: {tools: {a: ask}}", "a: &x [*x]", "? [a]\n: b", "<<: {a: b}", "!!binary aGk=: x", "models: {a: {base_url: 'http://h?%zz'}}",
		"tool_calling: {tool_choice: 'function:NAME', max_cost: 1e300, run_timeout: 1ns}", "default_model: \"sim/\\u2028\"", "- a\n--- b", "sim: {scripts: {a: ''}}",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		opts := &LoadOptions{Environ: []string{"KEY=secret"}}
		c, err := parse("lathe.yaml", []byte(in), opts)
		if err != nil {
			if len(ProblemsOf(err)) == 0 {
				t.Fatalf("an error without problems: %v", err)
			}
			return
		}
		first := c.YAML()
		again, err := parse("lathe.yaml", first, opts)
		if err != nil {
			t.Fatalf("what YAML wrote is refused: %v\n%s", err, first)
		}
		if second := again.YAML(); string(second) != string(first) {
			t.Fatalf("not a fixed point:\n%s\nthen\n%s", first, second)
		}
	})
}

func TestMarksDistinguishValues(t *testing.T) {
	t.Parallel()
	marks := map[string]bool{}
	for _, r := range []Ref{{}, {value: secret.New(canary)}, {value: secret.New(canary + "x")}, {shown: "${KEY}", value: secret.New(canary)}, {shown: "${file:key}", value: secret.New(canary)}} {
		m := r.Mark()
		if marks[m] || strings.Contains(m, canary) || (m == "") != r.IsZero() {
			t.Errorf("%v has the mark %q", r, m)
		}
		marks[m] = true
	}
	if a, b := (Ref{shown: "${file:key}", value: secret.New("a")}), (Ref{shown: "${file:key}", value: secret.New("b")}); a.Mark() != b.Mark() {
		t.Error("a file that is put anew has another mark")
	}
}
