package config

import (
	"fmt"
	"strings"
)

const referenceHead = `# Configuration

Written from the tables of package config; do not edit.

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

// Reference returns docs/config.md: every key with its default and what it means.
func Reference() string {
	var b strings.Builder
	b.WriteString(referenceHead)
	rows := Default().keys()
	startTable(&b, "models")
	writeRow(&b, &rows[0])
	for _, k := range everyKey(nil) {
		writeRow(&b, &k)
	}
	section := ""
	for _, k := range flat(rows[1:]) {
		if top, _, _ := strings.Cut(k.path, "."); top != section {
			section = top
			startTable(&b, section)
		}
		writeRow(&b, &k)
	}
	return b.String()
}

func startTable(b *strings.Builder, title string) {
	fmt.Fprintf(b, "\n## %s\n\n| key | default | value | meaning |\n|---|---|---|---|\n", title)
}

func writeRow(b *strings.Builder, k *key) {
	def := k.def
	if def != "" {
		def = "`" + def + "`"
	}
	fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", k.path, def, strings.ReplaceAll(k.v.kind(), "|", `\|`), strings.ReplaceAll(k.doc, "|", `\|`))
}
