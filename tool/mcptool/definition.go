package mcptool

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/schema"
)

// A definition is a server's definition of one tool.
type definition struct {
	name        string   // the server's name
	description string   // without hidden characters
	schema      []byte   // schema of the arguments, without hidden characters
	output      []byte   // schema of the output; nil: none
	marks       []mark   // parameters that are also sent as headers
	hidden      int      // number of removed hidden characters
	unchecked   []string // parts of the schemas that were removed, with reasons
	parts       parts    // hashes of the parts before anything was removed
	digest      string   // hash of all parts
	canonical   []byte   // all parts in RFC 8785 form
}

// partNames are the parts of a definition that a pin covers, in the order of error texts.
var partNames = [...]string{"name", "description", "inputSchema", "outputSchema", "annotations"}

// parts are the hashes of the parts of a definition, by name; a missing part has none.
type parts map[string]string

// changed returns the names of the parts in which two definitions differ.
func (p parts) changed(from parts) []string {
	var out []string
	for _, name := range partNames {
		if p[name] != from[name] {
			out = append(out, name)
		}
	}
	return out
}

// readDefinition reads one element of a tools/list result, which is valid JSON. If the element is not valid but has a name, it returns an
// error and a definition with its digest.
func readDefinition(raw []byte) (*definition, error) {
	if raw[0] != '{' {
		return nil, errors.New("a definition is not an object")
	}
	d := &definition{parts: parts{}}
	if d.name = rawjson.TextAt(raw, "name"); d.name == "" {
		return nil, errors.New("a definition without a name")
	}
	if len(d.name) > maxRemoteName {
		return nil, fmt.Errorf("a name of %d bytes, and at most %d are taken", len(d.name), maxRemoteName)
	}
	if err := d.hash(raw); err != nil {
		return nil, err
	}
	return d, d.read(raw)
}

// hash sets the digest: SHA-256 of the RFC 8785 form of the parts.
func (d *definition) hash(raw []byte) error {
	all := []byte{'{'}
	for _, name := range partNames {
		v := rawjson.At(raw, name)
		if v == nil {
			continue
		}
		canonical, err := rawjson.AppendCanonical(nil, v)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		d.parts[name] = sum(canonical)
		if len(all) > 1 {
			all = append(all, ',')
		}
		all = append(rawjson.AppendQuote(all, name), ':')
		all = append(all, canonical...)
	}
	canonical, err := rawjson.AppendCanonical(nil, append(all, '}'))
	if err != nil {
		return err
	}
	d.digest, d.canonical = sum(canonical), canonical
	return nil
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// read sets the parts that the model receives.
func (d *definition) read(raw []byte) error {
	if v := rawjson.At(raw, "description"); v != nil {
		if len(v) > maxDescriptionBytes {
			return fmt.Errorf("a description of %d bytes, and at most %d are taken", len(v), maxDescriptionBytes)
		}
		if v[0] != '"' {
			return errors.New("a description that is not text")
		}
		d.description, d.hidden = clean(rawjson.Text(v))
	}
	for _, s := range []struct {
		name string
		to   *[]byte
	}{{"inputSchema", &d.schema}, {"outputSchema", &d.output}} {
		v := rawjson.At(raw, s.name)
		switch {
		case v == nil:
			continue
		case len(v) > maxSchemaBytes:
			return fmt.Errorf("%s has %d bytes, and at most %d are taken", s.name, len(v), maxSchemaBytes)
		case v[0] != '{':
			return fmt.Errorf("%s is not an object", s.name)
		}
		cleaned, n, err := cleanSchema(nil, v)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		relaxed, left := schema.Relax(cleaned)
		for _, one := range left {
			d.unchecked = append(d.unchecked, s.name+"."+one)
		}
		*s.to = relaxed
		d.hidden += n
	}
	if d.schema != nil {
		var err error
		if d.marks, err = readMarks(d.schema); err != nil {
			return err
		}
	}
	if _, n := clean(d.name); n > 0 {
		return errors.New("hidden or control characters in the name")
	}
	return nil
}

// readList reads the tools of one page of a tools/list result.
func readList(result []byte) (defs []*definition, refused map[string]error) {
	refused = map[string]error{}
	i := 0
	for raw := range rawjson.Elements(rawjson.At(result, "tools")) {
		i++
		d, err := readDefinition(raw)
		if d == nil {
			refused[fmt.Sprintf("number %d", i)] = err
			continue
		}
		if err != nil {
			refused[d.name] = err
		}
		defs = append(defs, d)
	}
	return defs, refused
}

// twice returns the names of the definitions whose name an earlier one has.
func twice(defs []*definition) []string {
	seen, out := map[string]bool{}, []string(nil)
	for _, d := range defs {
		if seen[d.name] {
			out = append(out, d.name)
		}
		seen[d.name] = true
	}
	return out
}
