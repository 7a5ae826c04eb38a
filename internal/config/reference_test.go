package config

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const referenceHead = `# Configuration

This page lists the common settings of ` + "`lathe.yaml`" + `, one strict YAML file in which every key has a default:

` + "```yaml" + `
default_model: fast
models:
  fast:
    base_url: https://api.openai.com/v1
    key: ${OPENAI_API_KEY}
    model: gpt-5-mini
tool_calling:
  max_iterations: 12
policy:
  tools:
    send_mail: ask
` + "```" + `

An unknown key is an error that names the file, the line and the nearest valid key; ` + "`lathe config check`" + ` reports every error.
[Further settings](internals/config.md) has rarer keys of these sections, such as ` + "`tools.openapi`" + `, and the sections %s.

Flags win over the environment, and the environment wins over the file. The variable of a key is ` + "`LATHE_`" + `
and the key in capitals with its dots as ` + "`_`" + `: ` + "`LATHE_TOOL_CALLING_MAX_ITERATIONS=4`" + `. Lists are separated by
commas. Models and other mappings stand in the file only.

Keys, headers and addresses may refer to values outside the file: ` + "`${NAME}`" + ` to the environment, ` + "`${file:path}`" + ` to
a file (a relative path starts at the configuration file, and one line end is cut off). ` + "`$${`" + ` is the text ` + "`${`" + `.
A reference to a missing or empty value is an error. Keys are written as references only.

Durations are written ` + "`300ms`, `30s`, `15m`, `1h30m`" + `, and sizes ` + "`65536`, `64KiB`, `1MiB`" + `. This page is generated from package config by make gen: do not edit it.
`

const furtherHead = `# Further settings

Generated from the fields of package config by make gen; do not edit. [config.md](../config.md) has the other settings, and how they are written.
`

// further are the beginnings of the keys that docs/internals/config.md has.
var further = []string{"models.NAME.transforms", "models.NAME.thinking_binding", "models.NAME.max_line_bytes", "models.NAME.max_event_bytes", "models.NAME.max_response_bytes",
	"models.NAME.max_answer_bytes", "models.NAME.max_answer_calls", "models.NAME.max_continuations", "tool_calling.retention", "tools.http.NAME.parameters.NAME.style",
	"tools.http.NAME.parameters.NAME.explode", "tools.http.NAME.parameters.NAME.allow_reserved", "tools.circuit", "tools.retry", "serve.seal_key", "serve.previous_seal_key", "tools.temporal", "tools.run", "tools.openapi", "tools.wasm", "tools.search", "serve.oidc", "serve.console", "approval", "mcp", "workers", "groups", "telemetry", "sim"}

// isFurther reports whether a key is rarer than those of docs/config.md: one of further, or of the login of a tool.
func isFurther(path string) bool {
	return strings.Contains(path, ".oauth.") || slices.ContainsFunc(further, func(prefix string) bool {
		return path == prefix || strings.HasPrefix(path, prefix+".")
	})
}

// reference returns docs/config.md and docs/internals/config.md: every key with its default and what it means. comments are those of
// the fields, by "Struct.Field".
func reference(comments map[string]string) (common, rare string) {
	sections := slices.DeleteFunc(slices.Clone(further), func(prefix string) bool { return strings.Contains(prefix, ".") })
	head := fmt.Sprintf(referenceHead, "`"+strings.Join(sections, "`, `")+"`")
	return head + tables(comments, false), furtherHead + tables(comments, true)
}

func tables(comments map[string]string, rare bool) string {
	var b strings.Builder
	section := ""
	for _, s := range flat(settingsOf(reflect.TypeFor[Config]())) {
		if isFurther(s.path) != rare {
			continue
		}
		top, _, _ := strings.Cut(s.path, ".")
		if top != section {
			section = top
			fmt.Fprintf(&b, "\n## %s\n\n| key | default | value | meaning |\n|---|---|---|---|\n", section)
		}
		def := s.def
		if def != "" {
			def = "`" + def + "`"
		}
		escape := strings.NewReplacer("|", `\|`)
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", s.path, def, escape.Replace(s.kind.what), escape.Replace(s.text(comments)))
	}
	return b.String()
}

// fieldComments reads the comments of the fields that have a key from the source of the package. It returns
// them by "Struct.Field", and as the text of comments.txt.
func fieldComments(t *testing.T) (map[string]string, string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, "../../settings.go") // lathe.Settings and lathe.Limits
	byField, text := map[string]string{}, ""
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			fields, ok := spec.Type.(*ast.StructType)
			if !ok {
				return true
			}
			for _, f := range fields.Fields.List {
				if f.Tag == nil || f.Doc == nil || len(f.Names) == 0 || !strings.Contains(f.Tag.Value, "key:") {
					continue
				}
				name := spec.Name.Name + "." + f.Names[0].Name
				byField[name] = strings.Join(strings.Fields(f.Doc.Text()), " ")
				text += name + " " + byField[name] + "\n"
			}
			return true
		})
	}
	return byField, text
}

// The comment of each field reaches docs/config.md and the help of flags.
func TestReferenceIsWritten(t *testing.T) {
	t.Parallel()
	comments, text := fieldComments(t)
	for _, s := range flat(settingsOf(reflect.TypeFor[Config]())) {
		if doc := s.text(comments); doc == "" || !strings.HasSuffix(doc, ".") {
			t.Errorf("%s: the comment before the field %s is its text in the reference; it ends with a full stop: %q", s.path, s.field, doc)
		}
	}
	common, rare := reference(comments)
	for file, want := range map[string]string{"comments.txt": text, "../../docs/config.md": common, "../../docs/internals/config.md": rare} {
		if *update {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s is old: run make gen (-want +got):\n%s", file, diff)
		}
	}
}
