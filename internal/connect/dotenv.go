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
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		if s := strings.TrimSpace(line); s == "" || strings.HasPrefix(s, "#") {
			continue
		}
		m := assignment().FindStringSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf("line %d is not NAME=VALUE", n)
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
	var lines []string
	if len(text) > 0 {
		lines = strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	}
	for _, e := range entries {
		if e.Value == Absent {
			lines = slices.DeleteFunc(lines, func(l string) bool { m := assignment().FindStringSubmatch(l); return m != nil && m[1] == e.Path[0] })
			continue
		}
		line, found := fmt.Sprintf("%s=%v", e.Path[0], e.Value), false
		for i, l := range lines {
			if m := assignment().FindStringSubmatch(l); m != nil && m[1] == e.Path[0] {
				lines[i], found = line, true
			}
		}
		if !found {
			lines = append(lines, line)
		}
	}
	return []byte(strings.Join(lines, "\n") + "\n"), nil
}
