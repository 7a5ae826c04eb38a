package verify

import (
	"encoding/json"
	"math/big"
	"strings"
)

// sameJSON reports whether two texts are the same JSON value: numbers by their exact value, members in any order.
func sameJSON(a, b string) bool {
	x, errX := exact(a)
	y, errY := exact(b)
	return errX == nil && errY == nil && same(x, y)
}

func exact(text string) (v any, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

func same(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			other, ok := b[k]
			if !ok || !same(v, other) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !same(a[i], b[i]) {
				return false
			}
		}
		return true
	case json.Number:
		b, ok := b.(json.Number)
		return ok && (a == b || sameNumber(string(a), string(b)))
	}
	return a == b
}

// maxNumber bounds the texts of numbers that are compared by value, and their exponents with them.
const maxNumber = 40

func sameNumber(a, b string) bool {
	if len(a) > maxNumber || len(b) > maxNumber || strings.ContainsAny(a+b, "eE") {
		return false
	}
	x, okX := new(big.Rat).SetString(a)
	y, okY := new(big.Rat).SetString(b)
	return okX && okY && x.Cmp(y) == 0
}
