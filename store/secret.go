package store

import (
	"bytes"
	"context"
	"time"

	"github.com/lathe-run/lathe"
)

// maxSharedSecret is the maximum length of a value of a [SecretKeeper], in bytes.
const maxSharedSecret = 4096

// A SecretKeeper stores random values that the processes with the same store share, such as a key with which they encrypt data for clients.
// Exports of runs do not contain the values, but any program that can read the store can read them.
type SecretKeeper interface {
	// SharedSecret returns the value that is stored under name. If none is stored, it stores value and returns it. All callers get the same
	// value, including concurrent callers in different processes. An empty name, or a value that is empty or above 4,096 bytes, is an error
	// of code invalid_request.
	SharedSecret(ctx context.Context, name string, value []byte) ([]byte, error)
}

// FitsSecret checks the arguments of [SecretKeeper].SharedSecret. It returns nil if they are valid, and otherwise an error of code
// invalid_request. A store must call it in SharedSecret. op is the Op of the error.
func FitsSecret(op, name string, value []byte) error {
	if name == "" || len(value) == 0 || len(value) > maxSharedSecret {
		return &lathe.Error{Code: lathe.CodeInvalidRequest, Op: op}
	}
	return nil
}

// namedRecords implements [SecretKeeper] and [ValueKeeper] over [Rows]. Both are rows with a name; that of a value begins with valuePrefix.
type namedRecords struct{ begin transaction }

// valuePrefix is the prefix of the names of values. No name of a [SecretKeeper] begins with it.
const valuePrefix = "value:"

// SharedSecret implements [SecretKeeper].
func (n namedRecords) SharedSecret(ctx context.Context, name string, value []byte) ([]byte, error) {
	const op = "keep the secret"
	if err := FitsSecret("store: "+op, name, value); err != nil {
		return nil, err
	}
	value = bytes.Clone(value)
	var kept []byte
	err := n.begin(ctx, op, readWrite, func(rows Rows, _ time.Time) (err error) {
		kept, err = rows.Value(name)
		if err != nil || kept != nil {
			return err
		}
		kept = bytes.Clone(value)
		return rows.PutValue(name, value)
	})
	if err != nil {
		return nil, err
	}
	return kept, nil
}
