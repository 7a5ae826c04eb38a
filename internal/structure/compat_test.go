package structure

import (
	"encoding/json"
	"flag"
	"fmt"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/event"
)

// The files of testdata/compat list what programs, clients, configurations and dashboards may depend on, as of the last
// release: `go test ./internal/structure -run TestWhatBreaksIsAnnounced -update` writes them when a release is made. docs/compatibility.md is
// the promise.
var update = flag.Bool("update", false, "write testdata/compat as of a release")

// TestWhatBreaksIsAnnounced compares the module with the lists. A line that is missing now, because its name was removed or its
// type changed, needs an entry under Breaking in the changelog that names it. New lines are compatible.
func TestWhatBreaksIsAnnounced(t *testing.T) {
	inRoot(t)
	for name, surface := range map[string]struct {
		now  []string
		word func(line string) string // that the changelog must have
	}{
		"go":      {goAPI(t), lastWordOf},
		"config":  {settings(t), firstWordOf},
		"http":    {operations(t), lastWordOf},
		"errors":  {rowsOf(t, "docs/errors.md", "", 60), wholeLine},
		"metrics": {rowsOf(t, "docs/events.md", "lathe_", 20), wholeLine},
		"events":  {event.Types(), wholeLine},
	} {
		file := filepath.Join("testdata", "compat", name+".txt")
		slices.Sort(surface.now)
		now := slices.Compact(surface.now)
		if *update {
			if err := os.WriteFile(file, []byte(strings.Join(now, "\n")+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		for _, line := range unannounced(documentText(t, "CHANGELOG.md"), strings.Split(strings.TrimSpace(documentText(t, filepath.ToSlash(file))), "\n"), now, surface.word) {
			t.Errorf("%s: %q is removed or changed. If that must be, name it in a line under Breaking of CHANGELOG.md", name, line)
		}
	}
}

func TestUnannouncedChangesAreFound(t *testing.T) {
	inRoot(t)
	const log = "# Changelog\n\n## [Unreleased]\n\n### Breaking\n- Breaking: Go: `x.Gone` and `x.Form` are removed, the package `z` is internal.\n\n### Added\n- `x.Lost` is shown.\n\n## [0.1.0]\n\n### Breaking\n- Breaking: `x.Old`.\n"
	base := []string{"x func Gone()", "x func Kept()", "x func Lost()", "x func Old()", "x func Turned(int)",
		"x type Form struct", "x field Form.A int", "x method Form.B()", "x field Kind.C int", "y field Form.D int", "z func E()"}
	got := unannounced(log, base, []string{"x func Kept()", "x func Turned(string)", "x func New()", "x type Kind struct", "y type Form struct"}, lastWordOf)
	if want := []string{"x func Lost()", "x func Old()", "x func Turned(int)", "x field Kind.C int", "y field Form.D int"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

// unannounced returns the lines of base that are not in now and whose words are not in the unreleased section Breaking of a
// changelog. A line there that names a type or a package that is removed announces all that it has.
func unannounced(changelog string, base, now []string, word func(string) string) (missing []string) {
	_, breaking, _ := strings.Cut(changelog, "\n## [Unreleased]\n")
	breaking, _, _ = strings.Cut(breaking, "\n## ")
	_, breaking, _ = strings.Cut(breaking, "### Breaking\n")
	breaking, _, _ = strings.Cut(breaking, "\n### ")
	isNamed := func(word string) bool {
		return regexp.MustCompile(`(^|[^\w])` + regexp.QuoteMeta(word) + `($|[^\w])`).MatchString(breaking)
	}
	isGone := func(prefix string) bool {
		return !slices.ContainsFunc(now, func(line string) bool { return strings.HasPrefix(line, prefix) })
	}
	for _, line := range base {
		if slices.Contains(now, line) || isNamed(word(line)) {
			continue
		}
		if of := member.FindStringSubmatch(line); of != nil && isGone(of[1]+" type "+of[2]+" ") && isNamed(of[2]) {
			continue // the type is named, and its fields and methods go with it
		}
		if path, _, _ := strings.Cut(line, " "); isGone(path+" ") && isNamed("package `"+path+"`") {
			continue
		}
		missing = append(missing, line)
	}
	return missing
}

// member matches the line of a field or a method: its package, and its type.
var member = regexp.MustCompile(`^(\S+) (?:field|method|embedded) (\w+)\.`)

func wholeLine(line string) string { return line }

// firstWordOf returns the key of a setting.
func firstWordOf(line string) string {
	key, _, _ := strings.Cut(line, " ")
	return key
}

var lastWord = regexp.MustCompile(`(?:func|type|const|var|field|method|embedded) (?:\w+(?:\[[^\]]*\])?\.)?(\w+)|([/\w{}.]+)$`)

// lastWordOf returns the name that a line declares, without its package and type; of an operation the path.
func lastWordOf(line string) string {
	m := lastWord.FindStringSubmatch(line)
	if m == nil {
		return line
	}
	if m[1] != "" {
		return m[1]
	}
	return m[2][strings.LastIndexByte(m[2], '.')+1:]
}

// unpromised are the packages that other modules can import today and that become internal. docs/compatibility.md names them.
var unpromised = []string{"remote"}

// isPromised reports whether the names of a public package are kept in the list.
func isPromised(dir string) bool {
	return !slices.Contains(unpromised, dir) && !strings.HasPrefix(dir, "lab/") && !isKit(dir)
}

func TestCompatibilityNamesWhatIsNotPromised(t *testing.T) {
	inRoot(t)
	_, list, ok := strings.Cut(documentText(t, "docs/compatibility.md"), "\nNot promised: ")
	list, _, _ = strings.Cut(list, "\n\n")
	for dir, files := range packages(t) {
		named := strings.Contains(list, "`"+dir+"`")
		if isPublic(dir, files) && !strings.HasPrefix(dir, "lab/") && named == isPromised(dir) {
			t.Errorf("%s: it is promised: %t, and docs/compatibility.md lists it as not promised: %t", dir, isPromised(dir), named)
		}
	}
	if !ok {
		t.Error("docs/compatibility.md does not say what is not promised")
	}
}

// goAPI returns the exported declarations of the packages that are promised, one on a line. A method of an interface is part of the line of
// its type, because a further one breaks those who implement it.
func goAPI(t *testing.T) (lines []string) {
	t.Helper()
	for _, p := range publicPackages(t) {
		path := strings.TrimPrefix(strings.TrimPrefix(p.Path(), "github.com/lathe-run/lathe"), "/")
		if path == "" {
			path = "lathe"
		}
		if !isPromised(path) {
			continue
		}
		show := func(typ types.Type) string {
			return types.TypeString(nameless(typ), func(q *types.Package) string {
				if q == p {
					return ""
				}
				return q.Name()
			})
		}
		for _, name := range p.Scope().Names() {
			o := p.Scope().Lookup(name)
			if !o.Exported() {
				continue
			}
			switch o := o.(type) {
			case *types.Func:
				lines = append(lines, fmt.Sprintf("%s func %s%s", path, name, strings.TrimPrefix(show(o.Type()), "func")))
			case *types.Const:
				lines = append(lines, fmt.Sprintf("%s const %s %s", path, name, show(o.Type())))
			case *types.Var:
				lines = append(lines, fmt.Sprintf("%s var %s %s", path, name, show(o.Type())))
			case *types.TypeName:
				lines = append(lines, typeLines(path, o, show)...)
			}
		}
	}
	if len(lines) < 1000 {
		t.Fatalf("the public packages have %d declarations: the search is broken", len(lines))
	}
	return lines
}

func typeLines(path string, o *types.TypeName, show func(types.Type) string) []string {
	under := o.Type().Underlying()
	what := show(under)
	structure, isStruct := under.(*types.Struct)
	if isStruct {
		what = "struct"
	}
	if methods, ok := under.(*types.Interface); ok && methods.IsMethodSet() {
		var each []string
		for m := range methods.Methods() {
			each = append(each, m.Name()+strings.TrimPrefix(show(m.Type()), "func"))
		}
		slices.Sort(each)
		what = "interface{" + strings.Join(each, "; ") + "}"
	}
	if o.IsAlias() {
		what = "= " + show(types.Unalias(o.Type()))
	}
	lines := []string{fmt.Sprintf("%s type %s %s", path, o.Name(), what)}
	if o.IsAlias() {
		return lines
	}
	if isStruct {
		for f := range structure.Fields() {
			if f.Exported() {
				lines = append(lines, fmt.Sprintf("%s field %s.%s %s", path, o.Name(), f.Name(), show(f.Type())))
			}
			if of, ok := f.Type().Underlying().(*types.Struct); ok && f.Embedded() {
				for promoted := range of.Fields() {
					if promoted.Exported() {
						lines = append(lines, fmt.Sprintf("%s field %s.%s %s", path, o.Name(), promoted.Name(), show(promoted.Type())))
					}
				}
			}
		}
	}
	if types.IsInterface(under) {
		return lines
	}
	methods := types.NewMethodSet(types.NewPointer(o.Type()))
	for m := range methods.Methods() {
		if m.Obj().Exported() {
			lines = append(lines, fmt.Sprintf("%s method %s.%s%s", path, o.Name(), m.Obj().Name(), strings.TrimPrefix(show(m.Type()), "func")))
		}
	}
	return lines
}

// nameless returns a type without the names of parameters, which are no part of it.
func nameless(t types.Type) types.Type {
	s, ok := t.(*types.Signature)
	if !ok || s.TypeParams().Len() > 0 {
		return t
	}
	without := func(in *types.Tuple) *types.Tuple {
		var out []*types.Var
		for v := range in.Variables() {
			out = append(out, types.NewParam(v.Pos(), v.Pkg(), "", nameless(v.Type())))
		}
		return types.NewTuple(out...)
	}
	return types.NewSignatureType(nil, nil, nil, without(s.Params()), without(s.Results()), s.Variadic())
}

// rowsOf returns the first cell of each row of a page's tables that is a name in code with the prefix. least guards the search.
func rowsOf(t *testing.T, page, prefix string, least int) (names []string) {
	t.Helper()
	row := regexp.MustCompile("(?m)^\\| (?:<a id=\"[a-z0-9_]+\"></a>)?`(" + prefix + "[A-Za-z0-9_.]+)` \\|")
	for _, m := range row.FindAllStringSubmatch(documentText(t, page), -1) {
		names = append(names, m[1])
	}
	if len(names) < least {
		t.Fatalf("%s has %d names: the search is broken", page, len(names))
	}
	return names
}

// settings returns the keys of docs/config.md and docs/internals/config.md with their defaults.
func settings(t *testing.T) (lines []string) {
	t.Helper()
	for _, m := range regexp.MustCompile("(?m)^\\| `([A-Za-z0-9_.]+)` \\| `?([^|`]*)`? \\|").FindAllStringSubmatch(settingsText(t), -1) {
		lines = append(lines, strings.TrimSpace(m[1]+" = "+m[2]))
	}
	if len(lines) < 200 {
		t.Fatalf("docs/config.md has %d keys: the search is broken", len(lines))
	}
	return lines
}

// settingsText returns the pages that list the settings.
func settingsText(t *testing.T) string {
	t.Helper()
	return documentText(t, "docs/config.md") + documentText(t, "docs/internals/config.md")
}

// operations returns the operations of server/openapi.json, and the properties of its schemas.
func operations(t *testing.T) (lines []string) {
	t.Helper()
	var doc struct {
		Paths      map[string]map[string]json.RawMessage
		Components struct {
			Schemas map[string]struct {
				Properties map[string]json.RawMessage
			}
		}
	}
	if err := json.Unmarshal([]byte(documentText(t, "server/openapi.json")), &doc); err != nil {
		t.Fatal(err)
	}
	for path, methods := range doc.Paths {
		for method := range maps.Keys(methods) {
			lines = append(lines, strings.ToUpper(method)+" "+path)
		}
	}
	for name, s := range doc.Components.Schemas {
		for property := range s.Properties {
			lines = append(lines, "property "+name+"."+property)
		}
	}
	if len(lines) < 200 {
		t.Fatalf("server/openapi.json has %d lines: the search is broken", len(lines))
	}
	return lines
}
