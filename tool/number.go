package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// readNumber decodes numbers in two cases for which the decoder has other rules: a number in a field of type any keeps its digits, without
// a conversion to float64, and an integer field accepts what JSON Schema calls an integer, also 1.0 and 1e2. v is a pointer to the field.
func readNumber(dec *jsontext.Decoder, v any) error {
	if dec.PeekKind() != jsontext.KindNumber {
		return errors.ErrUnsupported
	}
	if free, ok := v.(*any); ok {
		raw, err := dec.ReadValue()
		if err != nil {
			return err
		}
		*free = json.Number(raw)
		return nil
	}
	field := reflect.ValueOf(v).Elem()
	isInteger := field.CanInt() || field.CanUint()
	if !isInteger || decodesItself(v) {
		return errors.ErrUnsupported
	}
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	if bytes.ContainsAny(raw, ".eE") {
		if whole, ok := rawjson.Integer(raw); ok {
			raw = whole
		}
	}
	return jsonv2.Unmarshal(raw, v)
}

// decodesItself reports whether the type of *v implements its own decoding of JSON.
func decodesItself(v any) bool {
	switch v.(type) {
	case jsonv2.Unmarshaler, jsonv2.UnmarshalerFrom, interface{ UnmarshalText([]byte) error }:
		return true
	}
	return false
}
