package schema

import (
	"errors"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// Validate checks one JSON value. It returns nil for a valid value, and otherwise at most [MaxViolations] violations, sorted by pointer,
// then keyword. value must be JSON without duplicate keys; Validate does not retain it. Numbers are compared by all their digits.
func (s *Schema) Validate(value []byte) []Violation {
	if s.flat != nil && s.flat.admits(value) {
		return nil
	}
	v, vs := decode(value)
	if vs != nil {
		return vs
	}
	return s.check(v)
}

// decode parses value. It returns a violation if value is not JSON or exceeds the limits.
func decode(value []byte) (any, []Violation) {
	if err := checkBounds(value, 0); err != nil {
		return nil, exceeded(err.Error())
	}
	v, err := rawjson.Value(value)
	if err != nil {
		return nil, []Violation{{Keyword: "json", Message: "is not a JSON value"}}
	}
	return v, nil
}

// check checks a decoded value with the library, if the work is within the limit.
func (s *Schema) check(v any) (vs []Violation) {
	defer func() {
		if p := recover(); p != nil {
			vs = exceeded(limitMessage(p))
		}
	}()
	if !s.work.allows(s.root, v) {
		return exceeded("takes too much work to check against this schema")
	}
	err := s.root.Validate(v)
	if err == nil {
		return nil
	}
	var broken *jsonschema.ValidationError
	if !errors.As(err, &broken) {
		return exceeded(limitMessage(err))
	}
	return violations(broken, s.metadata)
}

// exceeded returns the violation of a value that exceeds a limit.
func exceeded(message string) []Violation {
	return []Violation{{Keyword: "limit", Message: message}}
}

// limitMessage returns the message for a check that ended with a panic or an error of the library.
func limitMessage(p any) string {
	if slow, ok := p.(slowMatch); ok {
		return cut(slow.message)
	}
	return "cannot be checked against this schema"
}
