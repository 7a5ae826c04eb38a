package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// Validate checks one JSON value. It returns nil for a valid value, and the violations otherwise, sorted by
// pointer, then keyword, at most [MaxViolations]. value must
// be JSON without duplicate keys; Validate does not keep it. Numbers are compared by all their digits.
func (s *Schema) Validate(value []byte) []Violation {
	if v, _ := s.fast.decide(value); v == yes {
		return nil
	}
	return s.explain(value)
}

// explain returns the violations of a value that the fast path did not find valid; nil if it is valid all the same.
func (s *Schema) explain(value []byte) []Violation {
	value = bytes.Trim(value, " \t\r\n")
	end, err := rawjson.Scan(value, 0)
	if err != nil || end != len(value) || checkBounds(value, 0) != nil || !s.work.small(len(value)) {
		return s.check(value)
	}
	return s.diagnose(value)
}

// check decodes the value and checks it by the whole schema.
func (s *Schema) check(value []byte) (vs []Violation) {
	if err := checkBounds(value, 0); err != nil {
		return []Violation{{Keyword: "limit", Message: err.Error()}}
	}
	v, err := unmarshal(value)
	if err != nil {
		return []Violation{{Keyword: "json", Message: "is not a JSON value"}}
	}
	defer func() {
		if recover() != nil {
			vs = []Violation{{Keyword: "limit", Message: "cannot be checked against this schema"}}
		}
	}()
	if !s.work.allows(s.root, v, len(value)) {
		return []Violation{{Keyword: "limit", Message: "takes too much work to check against this schema"}}
	}
	broken := s.root.Validate(v)
	if broken == nil {
		return nil
	}
	return violations(broken, s.metadata)
}

// unmarshal builds a value with numbers as they are written.
func unmarshal(b []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("invalid character after top-level value")
	}
	return v, nil
}
