package mcptool

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe/internal/httpname"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// Parameters that a schema marks with x-mcp-header are also sent as headers. With the schema {"properties":{"region":{"type":"string",
// "x-mcp-header":"Region"}}}, a call with {"region":"eu"} has the header Mcp-Param-Region: eu. The protocol library sends them, too, but not
// for schemas with a list of types, which it cannot read.

const (
	headerMark   = "x-mcp-header"
	headerPrefix = "Mcp-Param-"
	maxMarks     = 64 // per schema
	maxMarkDepth = 16 // nesting of marked properties
)

// A mark is a parameter that is also sent as a header.
type mark struct {
	path []string // names of the properties that lead to the parameter
	name string   // of the header, after headerPrefix
}

// readMarks returns the marked parameters of a schema, which is valid JSON. It returns an error for an invalid mark, because the tool could
// not be called as its server requires.
func readMarks(schema []byte) ([]mark, error) {
	r := markReader{seen: map[string]bool{}}
	err := r.object(schema, nil)
	return r.marks, err
}

type markReader struct {
	marks []mark
	seen  map[string]bool
}

func (r *markReader) object(schema []byte, path []string) error {
	if len(path) == maxMarkDepth {
		return nil
	}
	for name, raw := range rawjson.Members(rawjson.At(schema, "properties")) {
		here := append(slices.Clip(path), rawjson.Text(name))
		if v := rawjson.At(raw, headerMark); v != nil {
			if err := r.mark(raw, v, here); err != nil {
				return err
			}
		}
		if err := r.object(raw, here); err != nil {
			return err
		}
	}
	return nil
}

var errMark = errors.New("an " + headerMark + " of its schema is not valid: it must be a header name of its own, at a property whose type is string, integer or boolean")

func (r *markReader) mark(property, v []byte, path []string) error {
	name := rawjson.Text(v)
	if !httpname.IsToken(name) || !isPrimitive(property) || r.seen[strings.ToLower(name)] {
		return errMark
	}
	if len(r.marks) == maxMarks {
		return fmt.Errorf("more than %d %s in its schema", maxMarks, headerMark)
	}
	r.seen[strings.ToLower(name)] = true
	r.marks = append(r.marks, mark{path, name})
	return nil
}

// isPrimitive reports whether the type of a property is string, integer or boolean, or one of these or null.
func isPrimitive(property []byte) bool {
	v := rawjson.At(property, "type")
	types := [][]byte{v}
	if rawjson.Kind(v) == '[' {
		types = slices.Collect(rawjson.Elements(v))
	}
	primitives := 0
	for _, t := range types {
		switch string(t) {
		case `"string"`, `"integer"`, `"boolean"`:
			primitives++
		case `"null"`:
		default:
			return false
		}
	}
	return primitives == 1
}

// addMarked adds the missing headers of marked parameters to a request of a protocol version with such headers. A null or missing parameter
// has no header.
func addMarked(h http.Header, marks []mark, arguments []byte) {
	if len(marks) == 0 || h.Get("Mcp-Method") == "" {
		return
	}
	for _, m := range marks {
		v := rawjson.At(arguments, m.path...)
		if v == nil || h.Get(headerPrefix+m.name) != "" {
			continue
		}
		if text, ok := headerText(v); ok {
			h.Set(headerPrefix+m.name, text)
		}
	}
}

// headerText returns the form of a value in a header: the text itself if it is printable ASCII without surrounding blanks, and marked
// base64 otherwise.
func headerText(v []byte) (string, bool) {
	switch {
	case string(v) == "true", string(v) == "false":
		return string(v), true
	case v[0] == '"':
		s := rawjson.Text(v)
		if isPlain(s) {
			return s, true
		}
		return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?=", true
	case v[0] == '-' || v[0] >= '0' && v[0] <= '9':
		const safe = 1<<53 - 1 // integers up to this are exact in every implementation
		f, err := strconv.ParseFloat(string(v), 64)
		if err != nil || f != math.Trunc(f) || math.Abs(f) > safe {
			return "", false
		}
		return strconv.FormatInt(int64(f), 10), true
	}
	return "", false
}

func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return strings.TrimSpace(s) == s && (!strings.HasPrefix(s, "=?base64?") || !strings.HasSuffix(s, "?="))
}
