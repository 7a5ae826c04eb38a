package connect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// TOML is the TOML format. An edit changes only the lines of the entries. Values must be strings and booleans, in tables with headers.
var TOML = &Format{Name: "TOML", decode: decodeTOML, edit: editTOML}

func decodeTOML(text []byte) (map[string]any, error) {
	tree := map[string]any{}
	err := toml.Unmarshal(text, &tree)
	return tree, err
}

func editTOML(text []byte, entries []Entry) ([]byte, error) {
	lines := linesOf(text)
	for _, e := range entries {
		last := len(e.Path) - 1
		table, key := strings.Join(e.Path[:last], "."), e.Path[last]
		if e.Value == Absent {
			if i, _ := findLine(lines, table, key); i >= 0 {
				lines = slices.Delete(lines, i, i+1)
			}
			continue
		}
		line := fmt.Sprintf("%s = %v", key, e.Value)
		if s, ok := e.Value.(string); ok {
			line = key + " = " + string(rawjson.AppendQuote(nil, s)) // JSON escapes are valid in TOML
		}
		lines = setLine(lines, table, key, line)
	}
	return []byte(strings.Join(lines, "\n") + "\n"), nil
}

// findLine returns the index of the line of a key in a table, and the index at which a line can be added to the table; each is -1 if there
// is none. The table "" is the part before the first header. Lines within multi-line strings are not recognised: [Format.Merge] detects a
// wrong edit.
func findLine(lines []string, table, key string) (at, end int) {
	current, end := "", -1
	if table == "" {
		end = 0
	}
	for i, l := range lines {
		l = strings.TrimSpace(l)
		if strings.HasPrefix(l, "[") {
			name, _, _ := strings.Cut(strings.TrimLeft(l, "["), "]")
			current = strings.TrimSpace(name)
		}
		if current != table {
			continue
		}
		if l != "" && (table != "" || !strings.HasPrefix(l, "#")) {
			end = i + 1
		}
		if name, _, ok := strings.Cut(l, "="); ok && strings.TrimSpace(name) == key {
			return i, end
		}
	}
	return -1, end
}

// setLine replaces or adds the line of a key in a table.
func setLine(lines []string, table, key, line string) []string {
	at, end := findLine(lines, table, key)
	if at >= 0 {
		lines[at] = line
		return lines
	}
	add := []string{line}
	switch {
	case end < 0:
		add = []string{"", "[" + table + "]", line}
		if len(lines) == 0 {
			add = add[1:]
		}
		end = len(lines)
	case end < len(lines) && table == "" && strings.HasPrefix(strings.TrimSpace(lines[end]), "["):
		add = append(add, "")
	}
	return slices.Insert(lines, end, add...)
}
