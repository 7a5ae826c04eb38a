// Package reflecttest fills values by reflection and lists the methods and constants that a Go file declares. Tests use it to cover
// every field and constant, those included that are added later.
package reflecttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
)

// Fill sets v, and everything that v refers to, to values that are not zero. Every string becomes text, and every raw JSON value becomes an
// object that contains text. Fill panics on a kind that it does not support.
func Fill(v reflect.Value, text string) {
	switch v.Type() {
	case reflect.TypeFor[json.RawMessage]():
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(map[string]string{"raw": text}); err != nil {
			panic(err)
		}
		v.SetBytes(bytes.TrimSpace(b.Bytes()))
		return
	case reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Date(2026, 5, 6, 7, 8, 9, 10, time.UTC)))
		return
	case reflect.TypeFor[[]lathe.Part]():
		v.Set(reflect.ValueOf(fullParts(text)))
		return
	case reflect.TypeFor[lathe.Part]():
		v.Set(reflect.ValueOf(fullParts(text)[0]))
		return
	case reflect.TypeFor[error]():
		v.Set(reflect.ValueOf(fmt.Errorf("failed: %s", text)))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint8:
		v.SetUint(1)
	case reflect.Float64:
		v.SetFloat(0.25)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		Fill(v.Elem(), text)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(text))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			Fill(v.Index(i), text)
		}
	case reflect.Map:
		k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		Fill(k, text)
		Fill(e, text)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(k, e)
	case reflect.Struct:
		for i := range v.NumField() {
			Fill(v.Field(i), text)
		}
	default:
		panic("Fill does not know " + v.Type().String())
	}
}

// fullParts returns one part of each kind with every field set.
func fullParts(text string) []lathe.Part {
	var out []lathe.Part
	for _, zero := range Parts {
		p := reflect.New(reflect.TypeOf(zero)).Elem()
		Fill(p, text)
		out = append(out, p.Interface().(lathe.Part))
	}
	return out
}

// Parts has one part of each kind. Its fields are zero.
var Parts = []lathe.Part{lathe.Text{}, lathe.Reasoning{}, lathe.Refusal{}, lathe.Blob{}, lathe.ToolCall{}, lathe.ToolResult{}, lathe.Opaque{}}

// Receivers returns the names of the types that declare the method in a file, in source order.
func Receivers(t testing.TB, file, method string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Recv == nil || fn.Name.Name != method {
			continue
		}
		typ := fn.Recv.List[0].Type
		if star, ok := typ.(*ast.StarExpr); ok {
			typ = star.X
		}
		names = append(names, typ.(*ast.Ident).Name)
	}
	return names
}

// Constants returns the values of the string constants of type typ that a file declares, in source order.
func Constants(t testing.TB, file, typ string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, d := range f.Decls {
		gen, ok := d.(*ast.GenDecl)
		if !ok || gen.Tok != token.CONST {
			continue
		}
		for _, s := range gen.Specs {
			spec := s.(*ast.ValueSpec)
			if id, ok := spec.Type.(*ast.Ident); !ok || id.Name != typ {
				continue
			}
			for _, v := range spec.Values {
				s, err := strconv.Unquote(v.(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, s)
			}
		}
	}
	return out
}
