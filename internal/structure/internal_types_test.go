package structure

import (
	"fmt"
	"go/token"
	"go/types"
	"slices"
	"testing"
)

// A program outside the module cannot name the types of internal packages: no exported function, method, field or
// variable of a public package has one.
func TestNoExportedInternalTypes(t *testing.T) {
	inRoot(t)
	for _, p := range publicPackages(t) {
		for _, name := range internalTypesOf(p) {
			t.Errorf("%s names a type of an internal package", name)
		}
	}
}

// The check finds an internal type wherever a declaration can have one.
func TestInternalTypesAreFound(t *testing.T) {
	inRoot(t)
	const dir = "example.com/m/"
	hidden := types.NewPackage(dir+"internal/hidden", "hidden")
	secret := types.NewNamed(types.NewTypeName(token.NoPos, hidden, "T", nil), types.Typ[types.Int], nil)
	alias := types.NewAlias(types.NewTypeName(token.NoPos, hidden, "A", nil), types.Typ[types.Int])
	p := types.NewPackage(dir+"open", "open")
	variable := func(typ types.Type) *types.Var { return types.NewVar(token.NoPos, p, "V", typ) }
	field := func(name string, typ types.Type) types.Type {
		return types.NewStruct([]*types.Var{types.NewField(token.NoPos, p, name, typ, false)}, nil)
	}
	function := func(in types.Type) types.Type {
		return types.NewSignatureType(nil, nil, nil, types.NewTuple(variable(in)), nil, false)
	}
	unexported := types.NewNamed(types.NewTypeName(token.NoPos, p, "unexported", nil), field("Field", secret), nil)
	for name, typ := range map[string]types.Type{
		"the type": secret, "an alias": alias, "pointer": types.NewPointer(secret), "slice": types.NewSlice(secret), "map": types.NewMap(types.Typ[types.Int], secret),
		"channel": types.NewChan(types.SendRecv, secret), "function": function(secret), "field": field("F", secret), "behind an unexported type": unexported,
		"method of an interface": types.NewInterfaceType([]*types.Func{types.NewFunc(token.NoPos, p, "M", function(secret).(*types.Signature))}, nil),
	} {
		p := types.NewPackage(dir+"open", "open")
		p.Scope().Insert(types.NewVar(token.NoPos, p, "X", typ))
		if got := internalTypesOf(p); len(got) != 1 {
			t.Errorf("%s: found %q", name, got)
		}
	}
	p.Scope().Insert(types.NewVar(token.NoPos, p, "x", secret))
	p.Scope().Insert(types.NewVar(token.NoPos, p, "Y", field("hidden", secret)))
	if got := internalTypesOf(p); len(got) != 0 {
		t.Errorf("found %q in a package that exports none", got)
	}
}

// internalTypesOf returns the exported declarations of p that name a type of an internal package.
func internalTypesOf(p *types.Package) []string {
	var found []string
	for _, name := range p.Scope().Names() {
		obj := p.Scope().Lookup(name)
		if !obj.Exported() {
			continue
		}
		w := &typeWalk{pkg: p, seen: map[types.Type]bool{}}
		w.report = func(where string) { found = append(found, where) }
		w.object(p.Path()+"."+name, obj)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// typeWalk visits every type that a declaration lets other packages see.
type typeWalk struct {
	pkg    *types.Package
	seen   map[types.Type]bool
	report func(where string)
}

func (w *typeWalk) object(where string, obj types.Object) {
	if named, ok := obj.Type().(*types.Named); ok && named.Obj() == obj {
		w.declared(where, named)
		return
	}
	w.visit(where, obj.Type())
}

// declared visits what belongs to a type of the package: its parameters, its fields and its methods.
func (w *typeWalk) declared(where string, t *types.Named) {
	if w.seen[t] {
		return
	}
	w.seen[t] = true
	w.parameters(where, t.TypeParams())
	w.visit(where, t.Underlying())
	for m := range t.Methods() {
		if m.Exported() {
			w.visit(where+"."+m.Name(), m.Type())
		}
	}
}

func (w *typeWalk) visit(where string, t types.Type) {
	switch t := t.(type) {
	case *types.Alias:
		w.named(where, t.Obj(), t.TypeArgs())
		w.visit(where, t.Rhs())
	case *types.Named:
		w.named(where, t.Obj(), t.TypeArgs())
		if w.isOwn(t) && !t.Obj().Exported() {
			w.declared(where, t)
		}
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() || f.Embedded() && w.isOwn(f.Type()) {
				w.visit(where+"."+f.Name(), f.Type())
			}
		}
	case *types.Interface:
		for m := range t.ExplicitMethods() {
			if m.Exported() {
				w.visit(where+"."+m.Name(), m.Type())
			}
		}
		for e := range t.EmbeddedTypes() {
			w.visit(where, e)
		}
	case *types.Signature:
		w.parameters(where, t.TypeParams())
		for _, list := range []*types.Tuple{t.Params(), t.Results()} {
			for v := range list.Variables() {
				w.visit(where, v.Type())
			}
		}
	case *types.Map:
		w.visit(where, t.Key())
		w.visit(where, t.Elem())
	case *types.Union:
		for term := range t.Terms() {
			w.visit(where, term.Type())
		}
	case interface{ Elem() types.Type }: // pointers, slices, arrays, channels
		w.visit(where, t.Elem())
	case *types.Basic, *types.TypeParam:
	default:
		w.report(fmt.Sprintf("%s: %T", where, t)) // what is not looked into is not passed
	}
}

func (w *typeWalk) named(where string, name *types.TypeName, args *types.TypeList) {
	if pkg := name.Pkg(); pkg != nil && isInternal(pkg.Path()) {
		w.report(where)
	}
	for arg := range args.Types() {
		w.visit(where, arg)
	}
}

func (w *typeWalk) parameters(where string, list *types.TypeParamList) {
	for p := range list.TypeParams() {
		w.visit(where, p.Constraint())
	}
}

// isOwn reports whether t is a type of the package, or a pointer to one.
func (w *typeWalk) isOwn(t types.Type) bool {
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := t.(*types.Named)
	return ok && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == w.pkg.Path()
}
