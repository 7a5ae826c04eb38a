package structure

import (
	"go/token"
	"go/types"
	"slices"
	"testing"
)

// maxMethods bounds the exported methods that the documentation of one type lists: beyond it the type is several types.
const maxMethods = 25

func TestPublicTypesHaveFewMethods(t *testing.T) {
	inRoot(t)
	types, most := 0, 0
	for _, p := range publicPackages(t) {
		for name, methods := range documentedMethods(p) {
			types, most = types+1, max(most, len(methods))
			if len(methods) > maxMethods {
				t.Errorf("%s.%s documents %d exported methods, want at most %d: %q", p.Path(), name, len(methods), maxMethods, methods)
			}
		}
	}
	if types < 300 || most < 15 {
		t.Errorf("%d types were found, with at most %d methods", types, most)
	}
}

// The count takes in what `go doc` lists: a type's own methods, and those of the unexported types that it embeds.
func TestDocumentedMethodsAreFound(t *testing.T) {
	inRoot(t)
	p := types.NewPackage("example.com/m/open", "open")
	method := func(name string) *types.Func {
		return types.NewFunc(token.NoPos, p, name, types.NewSignatureType(nil, nil, nil, nil, nil, false))
	}
	declare := func(name string, of types.Type, methods ...string) *types.Named {
		n := types.NewNamed(types.NewTypeName(token.NoPos, p, name, nil), of, nil)
		p.Scope().Insert(n.Obj())
		for _, m := range methods {
			receiver := types.NewVar(token.NoPos, p, "", types.NewPointer(n))
			n.AddMethod(types.NewFunc(token.NoPos, p, m, types.NewSignatureType(receiver, nil, nil, nil, nil, false)))
		}
		return n
	}
	embeds := func(list ...*types.Named) types.Type {
		var fields []*types.Var
		for _, n := range list {
			fields = append(fields, types.NewField(token.NoPos, p, n.Obj().Name(), types.NewPointer(n), true))
		}
		return types.NewStruct(fields, nil)
	}
	deep := declare("deep", embeds(), "Deep", "Own", "hidden")
	part := declare("part", embeds(deep), "Part")
	open := declare("Open", embeds(), "Elsewhere")
	declare("T", embeds(part, open), "Own", "own")
	asked := types.NewInterfaceType([]*types.Func{method("Asked"), method("asked")}, nil).Complete()
	hidden := declare("asked", asked)
	declare("I", types.NewInterfaceType([]*types.Func{method("Explicit")}, []types.Type{hidden, open}).Complete())
	got := documentedMethods(p)
	for name, want := range map[string][]string{"T": {"Deep", "Own", "Part"}, "Open": {"Elsewhere"}, "I": {"Asked", "Explicit"}} {
		if !slices.Equal(got[name], want) {
			t.Errorf("%s: found %q, want %q", name, got[name], want)
		}
	}
	if len(got) != 3 {
		t.Errorf("found %v in a package with 3 exported types", got)
	}
}

// documentedMethods returns the exported methods that the documentation of each exported type of p lists.
func documentedMethods(p *types.Package) map[string][]string {
	out := map[string][]string{}
	for _, name := range p.Scope().Names() {
		decl, ok := p.Scope().Lookup(name).(*types.TypeName)
		if !ok || !decl.Exported() {
			continue
		}
		out[name] = nil
		if named, ok := decl.Type().(*types.Named); ok && !decl.IsAlias() {
			out[name] = methodsOf(named)
		}
	}
	return out
}

func methodsOf(t *types.Named) (out []string) {
	add := func(m *types.Func) {
		if m.Exported() && !slices.Contains(out, m.Name()) {
			out = append(out, m.Name())
		}
	}
	if i, ok := t.Underlying().(*types.Interface); ok {
		for m := range i.ExplicitMethods() {
			add(m)
		}
		for e := range i.EmbeddedTypes() {
			if n := unexported(e, t.Obj().Pkg()); n != nil {
				out = append(out, methodsOf(n)...)
			}
		}
	} else {
		for m := range types.NewMethodSet(types.NewPointer(t)).Methods() {
			if embedsUnexported(t, m.Index()) {
				add(m.Obj().(*types.Func))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// embedsUnexported reports whether the path of a selection leads through unexported types of the package alone.
func embedsUnexported(t *types.Named, path []int) bool {
	for ; len(path) > 1; path = path[1:] {
		embedded := unexported(t.Underlying().(*types.Struct).Field(path[0]).Type(), t.Obj().Pkg())
		if embedded == nil {
			return false
		}
		t = embedded
	}
	return true
}

// unexported returns t, or what it points to, if it is an unexported type of the package, else nil.
func unexported(t types.Type, p *types.Package) *types.Named {
	if ptr, ok := t.(*types.Pointer); ok {
		t = ptr.Elem()
	}
	if n, ok := t.(*types.Named); ok && n.Obj().Pkg() == p && !n.Obj().Exported() {
		return n
	}
	return nil
}
