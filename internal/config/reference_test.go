package config

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const referenceHead = `# Configuration

Generated from the fields of package config by make gen; do not edit.

One strict YAML file, ` + "`lathe.yaml`" + `. Whatever is not listed here is an error that names the file, the line and
the nearest right word; ` + "`lathe config check`" + ` reports all of them at once. Every key has a default, so an empty
file is a whole one.

Flags win over the environment, and the environment wins over the file. The variable of a key is ` + "`LATHE_`" + `
and the key in capitals with its dots as ` + "`_`" + `: ` + "`LATHE_TOOL_CALLING_MAX_ITERATIONS=4`" + `. Lists are separated by
commas. Models and other mappings stand in the file only.

Keys, headers and addresses may refer to values outside the file: ` + "`${NAME}`" + ` to the environment, ` + "`${file:path}`" + ` to
a file (a relative path starts at the configuration file, and one line end is cut off). ` + "`$${`" + ` is the text ` + "`${`" + `.
What is not set, or empty, is an error. Keys are written as references only.

Durations are written ` + "`300ms`, `30s`, `15m`, `1h30m`" + `, and sizes ` + "`65536`, `64KiB`, `1MiB`" + `.

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
`

// reference returns docs/config.md: every key with its default and what it means. comments are those of
// the fields, by "Struct.Field".
func reference(comments map[string]string) string {
	var b strings.Builder
	b.WriteString(referenceHead)
	section := ""
	for _, s := range flat(settingsOf(reflect.TypeFor[Config]())) {
		top, _, _ := strings.Cut(s.path, ".")
		if top == "default_model" {
			top = "models"
		}
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
	for file, want := range map[string]string{"comments.txt": text, "../../docs/config.md": reference(comments)} {
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
