package structure

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// notOfTheTree are names in code of the documents that look like names of the repository and are others.
var notOfTheTree = map[string]string{
	"interrupted":      "an error code",
	"lathe/testdata":   "a folder in the user's cache",
	"package.json":     "a file of npm",
	"sim/demo":         "a simulated model",
	"testing/synctest": "a package of Go",
	"web/":             "a folder beside internal/gateway/console, whose row says so",
}

var (
	spans       = regexp.MustCompile("`([^`]+)`")
	goName      = regexp.MustCompile(`^\*?([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?:\(.*\))?$`)
	pathName    = regexp.MustCompile(`^[\w-]+(/[\w-]+)*/?$`)
	runPattern  = regexp.MustCompile(`-run '?([^' ]+)`)
	placeholder = regexp.MustCompile(`NAME|PACKAGE`)
)

// The names, folders and tests that the documents for developers write in code exist.
func TestDeveloperDocsNameWhatExists(t *testing.T) {
	inRoot(t)
	tree, checked := namesOf(t), 0
	for _, doc := range []string{"AGENTS.md", "ARCHITECTURE.md", "CONTRIBUTING.md"} {
		prose, _ := withoutCode(documentText(t, doc))
		for _, m := range spans.FindAllStringSubmatch(strings.ReplaceAll(prose, "\n", " "), -1) {
			if placeholder.MatchString(m[1]) && !strings.Contains(m[1], " ") || notOfTheTree[m[1]] != "" {
				continue
			}
			checked++
			if why := tree.lacks(m[1]); why != "" {
				t.Errorf("%s: `%s`: %s", doc, m[1], why)
			}
		}
	}
	if checked < 300 {
		t.Errorf("%d names: the search is broken", checked)
	}
}

func TestMissingNamesAreFound(t *testing.T) {
	inRoot(t)
	tree := namesOf(t)
	for _, name := range []string{"codecOf", "lathe.Gone", "tool.Runner.Gone", "internal/gone", "vanished", "serve.gone",
		"go test ./gone", "go test ./tool -run TestNothingOfThatKind", "TestNothingOfThatKind"} {
		if tree.lacks(name) == "" {
			t.Errorf("%s was not found to be missing", name)
		}
	}
	for _, name := range []string{"upstreams.Of", "*lathe.Error", "tool.Func(…)", "tool.Runner.Call", "jsonDialects", "internal/wire", "tool", "serve.max_concurrent", "max_tools",
		"go test ./tool/... ./policy", "go test ./internal/structure -run 'TestLayout|TestDeveloperDocs'", "./test", "$LATHE_SHARED/data", "make gen"} {
		if why := tree.lacks(name); why != "" {
			t.Errorf("%s: %s", name, why)
		}
	}
}

// names are what the Go files of the repository declare: types, functions, methods, fields, variables and constants.
type names struct {
	all      map[string]bool
	packages map[string]map[string]bool // by the name of the package
	tests    map[string]bool
	settings string
}

func namesOf(t *testing.T) *names {
	t.Helper()
	n := &names{all: map[string]bool{}, packages: map[string]map[string]bool{}, tests: testNames(t), settings: settingsText(t)}
	for _, f := range goFiles(t) {
		if f.isTest {
			continue
		}
		pkg := f.file.Name.Name
		if n.packages[pkg] == nil {
			n.packages[pkg] = map[string]bool{}
		}
		add := func(names ...*ast.Ident) {
			for _, name := range names {
				n.all[name.Name], n.packages[pkg][name.Name] = true, true
			}
		}
		for _, d := range f.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				add(d.Name)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.ValueSpec:
						add(spec.Names...)
					case *ast.TypeSpec:
						add(spec.Name)
						ast.Inspect(spec.Type, func(node ast.Node) bool {
							if field, ok := node.(*ast.Field); ok {
								add(field.Names...)
							}
							return true
						})
					}
				}
			}
		}
	}
	return n
}

// lacks returns why a text in code names nothing of the tree, or "" if it does or is no such name.
func (n *names) lacks(text string) string {
	if strings.HasPrefix(text, "go ") {
		return n.lacksCommand(text)
	}
	if strings.Contains(text, "/") && pathName.MatchString(text) {
		return lacksPath(text)
	}
	m := goName.FindStringSubmatch(text)
	if m == nil || fileName.MatchString(text) {
		return "" // TestDeveloperDocsNameFilesThatExist looks at files
	}
	parts := strings.Split(m[1], ".")
	last, declared := parts[len(parts)-1], n.all
	if pkg := n.packages[parts[0]]; len(parts) > 1 && pkg != nil {
		declared = pkg
	} else if len(parts) > 1 && m[1] == strings.ToLower(m[1]) {
		declared = nil // a setting
	}
	switch {
	case declared[last], n.tests[m[1]], n.packages[m[1]] != nil, strings.Contains(n.settings, "`"+m[1]+"`"), strings.Contains(n.settings, "."+m[1]+"`"), strings.Contains(n.settings, "`"+m[1]+"."):
		return ""
	case len(parts) == 1 && lacksPath(text) == "":
		return ""
	}
	return "no package declares it, and it is no setting"
}

func (n *names) lacksCommand(text string) string {
	for word := range strings.FieldsSeq(text) {
		if dir, ok := strings.CutPrefix(word, "./"); ok && !placeholder.MatchString(word) && dir != "..." {
			if why := lacksPath(strings.TrimSuffix(dir, "/...")); why != "" {
				return why
			}
		}
	}
	m := runPattern.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	for pattern := range strings.SplitSeq(m[1], "|") {
		pattern, _, _ = strings.Cut(pattern, "/")
		found := false
		for name := range n.tests {
			found = found || strings.Contains(name, pattern)
		}
		if !found {
			return "no test has " + pattern + " in its name"
		}
	}
	return ""
}

func lacksPath(name string) string {
	if _, err := os.Stat(filepath.FromSlash(name)); err != nil {
		return "there is no such file"
	}
	return ""
}
