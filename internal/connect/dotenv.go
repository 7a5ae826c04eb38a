package connect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lathe-run/lathe/internal/lazy"
)

// DotEnv is the format of .env files: lines NAME=VALUE.
var DotEnv = &Format{Name: "lines NAME=VALUE", decode: decodeDotEnv, edit: editDotEnv}

var assignment = lazy.Regexp(`^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_.-]*)\s*=\s*(.*?)\s*$`)

func decodeDotEnv(text []byte) (map[string]any, error) {
	tree := map[string]any{}
	for i, line := range linesOf(text) {
		if s := strings.TrimSpace(line); s == "" || strings.HasPrefix(s, "#") {
			continue
		}
		m := assignment().FindStringSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf("line %d is not NAME=VALUE", i+1)
		}
		value := m[2]
		if len(value) >= 2 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0] {
			value = value[1 : len(value)-1]
		}
		tree[m[1]] = value
	}
	return tree, nil
}

func editDotEnv(text []byte, entries []Entry) ([]byte, error) {
	lines := linesOf(text)
	for _, e := range entries {
		assigns := func(line string) bool {
			m := assignment().FindStringSubmatch(line)
			return m != nil && m[1] == e.Path[0]
		}
		if e.Value == Absent {
			lines = slices.DeleteFunc(lines, assigns)
			continue
		}
		line, found := fmt.Sprintf("%s=%v", e.Path[0], e.Value), false
		for i, l := range lines {
			if assigns(l) {
				lines[i], found = line, true
			}
		}
		if !found {
			lines = append(lines, line)
		}
	}
	return []byte(strings.Join(lines, "\n") + "\n"), nil
}

// linesOf returns the lines of a text without line ends; none for empty text.
func linesOf(text []byte) []string {
	if len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}
