package schema

import (
	"bytes"
	"errors"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// Validate checks one JSON value and returns nil when it is valid, else every violation, sorted by
// pointer, then keyword. Only the first [MaxViolations] are told. value is a text that is known to
// be JSON without duplicate keys; it is not kept. Numbers are compared by all their digits.
func (s *Schema) Validate(value []byte) []Violation {
	if s.fast.settle(value) == yes {
		return nil
	}
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
	return violations(broken, s.facts)
}

// unmarshal builds a value with numbers as they are written.
func unmarshal(b []byte) (any, error) { return jsonschema.UnmarshalJSON(bytes.NewReader(b)) }
