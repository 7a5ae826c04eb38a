package verify

import (
	"bytes"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// sameJSON reports whether two texts represent the same JSON value: numbers are compared by value, and the order of members is ignored.
func sameJSON(a, b string) bool {
	x, errX := rawjson.AppendCanonical(nil, []byte(a))
	y, errY := rawjson.AppendCanonical(nil, []byte(b))
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
