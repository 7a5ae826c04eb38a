package store

import (
	"bytes"
	"context"
	"time"

	"github.com/lathe-run/lathe"
)

// MaxValues is the maximum number of values that [ValueKeeper].Values returns.
const MaxValues = 10_000

// The limits of [FitsValue], in bytes.
const maxValue, maxValueName = 4096, 256

// A ValueKeeper stores small named values that the processes with the same store share, such as the tools that an operator has disabled.
// The last write wins. Exports of runs do not contain the values. Its methods may be called from several goroutines at once.
type ValueKeeper interface {
	// SetValue stores value under name; an empty value removes the name. A name that is empty or above 256 bytes, or a value above 4,096
	// bytes, is an error of code invalid_request.
	SetValue(ctx context.Context, name string, value []byte) error
	// Values returns the values whose names begin with prefix, by name. If there are more than [MaxValues], it returns the first MaxValues
	// in the order of names.
	Values(ctx context.Context, prefix string) (map[string][]byte, error)
}

// FitsValue checks the arguments of [ValueKeeper].SetValue. It returns nil if they are valid, and otherwise an error of code
// invalid_request. A store must call it in SetValue. op is the Op of the error.
func FitsValue(op, name string, value []byte) error {
	if name == "" || len(name) > maxValueName || len(value) > maxValue {
		return lathe.CodeInvalidRequest.Errorf(op, "a name of %d bytes and a value of %d: at most %d and %d fit", len(name), len(value), maxValueName, maxValue)
	}
	return nil
}

// SetValue implements [ValueKeeper].
func (n namedRecords) SetValue(ctx context.Context, name string, value []byte) error {
	const op = "set a value"
	if err := FitsValue("store: "+op, name, value); err != nil {
		return err
	}
	value = bytes.Clone(value)
	return n.begin(ctx, op, readWrite, func(rows Rows, _ time.Time) error { return rows.PutValue(valuePrefix+name, value) })
}

// Values implements [ValueKeeper].
func (n namedRecords) Values(ctx context.Context, prefix string) (out map[string][]byte, err error) {
	err = n.begin(ctx, "read values", readOnly, func(rows Rows, _ time.Time) error {
		found, err := rows.Values(valuePrefix+prefix, MaxValues)
		out = map[string][]byte{}
		for name, value := range found {
			out[name[len(valuePrefix):]] = value
		}
		return err
	})
	return out, err
}
