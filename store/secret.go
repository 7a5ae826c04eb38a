package store

import (
	"bytes"
	"context"
	"time"

	"github.com/lathe-run/lathe"
)

// MaxSharedSecret bounds a value of a [SecretKeeper], in bytes.
const MaxSharedSecret = 4096

// A SecretKeeper keeps random values that all processes of a store share, such as the key of what they encrypt for their
// clients. Exports of runs do not have them. A program that can read the store can read them.
type SecretKeeper interface {
	// SharedSecret returns the value that is kept under a name. If there is none, it keeps value and returns it: of several
	// processes that call it at the same time, all get the value of one. An empty name, an empty value, and a value above
	// [MaxSharedSecret] are errors of code invalid_request.
	SharedSecret(ctx context.Context, name string, value []byte) ([]byte, error)
}

// FitsSecret returns an error of code invalid_request for an empty name, an empty value, and one above [MaxSharedSecret].
func FitsSecret(op, name string, value []byte) error {
	if name == "" || len(value) == 0 || len(value) > MaxSharedSecret {
		return &lathe.Error{Code: lathe.CodeInvalidRequest, Op: op}
	}
	return nil
}

// namedRecords has the rules of a [SecretKeeper] and a [ValueKeeper]. Both are rows under a name: that of a value begins with valuePrefix.
type namedRecords struct{ begin transaction }

// valuePrefix begins the names of values. [SecretKeeper] has no name that begins so.
const valuePrefix = "value:"

// SharedSecret implements [SecretKeeper].
func (n namedRecords) SharedSecret(ctx context.Context, name string, value []byte) ([]byte, error) {
	const op = "keep the secret"
	if err := FitsSecret("store: "+op, name, value); err != nil {
		return nil, err
	}
	value = bytes.Clone(value)
	var kept []byte
	err := n.begin(ctx, op, true, func(rows Rows, _ time.Time) (err error) {
		if kept, err = rows.Value(name); err == nil && kept == nil {
			kept, err = bytes.Clone(value), rows.PutValue(name, value)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return kept, nil
}
