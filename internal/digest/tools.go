package digest

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// noArguments is the canonical schema of a tool without arguments.
const noArguments = `{"properties":{},"type":"object"}`

// NoTools is the result of [Tools] for an empty list.
const NoTools = "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"

// Tools returns the hash of the tool definitions that a model receives: a JSON array of {"description", "name", "parameters"}, each in the
// form of RFC 8785, sorted by name. The order of specs does not matter, and an empty list has the hash of "[]". A tool without a schema is
// hashed with the schema of an object without properties; a schema that is not valid JSON is hashed as a string.
func Tools(specs []*lathe.ToolSpec) string {
	sorted := slices.Clone(specs)
	slices.SortStableFunc(sorted, func(x, y *lathe.ToolSpec) int {
		return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.Description, y.Description),
			slices.Compare(x.Schema, y.Schema))
	})
	size := 2
	for _, s := range sorted {
		size += len(s.Name) + len(s.Description) + len(s.Schema) + 64
	}
	b := append(make([]byte, 0, size), '[')
	for i, s := range sorted {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"description":`...)
		b = rawjson.AppendQuote(b, s.Description)
		b = append(b, `,"name":`...)
		b = rawjson.AppendQuote(b, s.Name)
		b = append(b, `,"parameters":`...)
		if rawjson.SkipSpace(s.Schema, 0) == len(s.Schema) {
			b = append(b, noArguments...)
		} else {
			b = appendValue(b, s.Schema)
		}
		b = append(b, '}')
	}
	sum := sha256.Sum256(append(b, ']'))
	return hex.EncodeToString(sum[:])
}

// appendValue appends the canonical form of text, or text as a JSON string if it is not valid JSON.
func appendValue(b, text []byte) []byte {
	out, err := rawjson.AppendCanonical(b, text)
	if err != nil {
		return rawjson.AppendQuote(b, string(text))
	}
	return out
}
