package schema

import (
	"bytes"
	"errors"

	"github.com/santhosh-tekuri/jsonschema/v6"

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

// check is the verdict of the library.
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
	err = s.root.Validate(v)
	if err == nil {
		return nil
	}
	var broken *jsonschema.ValidationError
	if !errors.As(err, &broken) {
		return []Violation{{Keyword: "limit", Message: "cannot be checked against this schema"}}
	}
	return violations(broken, s.metadata)
}

// unmarshal builds a value with numbers as they are written.
func unmarshal(b []byte) (any, error) { return jsonschema.UnmarshalJSON(bytes.NewReader(b)) }
