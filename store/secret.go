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

// FitsSecret returns an error if the value cannot be kept under the name.
func FitsSecret(op, name string, value []byte) error {
	if name == "" || len(value) == 0 || len(value) > MaxSharedSecret {
		return &lathe.Error{Code: lathe.CodeInvalidRequest, Op: op}
	}
	return nil
}

var _ SecretKeeper = (*SharedSecrets)(nil)

// SharedSecrets is the part of a [Memory] that implements [SecretKeeper].
type SharedSecrets struct {
	*core
	of map[string][]byte
}

// SharedSecret implements [SecretKeeper].
func (s *SharedSecrets) SharedSecret(ctx context.Context, name string, value []byte) (kept []byte, err error) {
	const op = "keep the secret"
	if err := FitsSecret("store: "+op, name, value); err != nil {
		return nil, err
	}
	err = s.do(ctx, op, func(time.Time) error {
		if s.of[name] == nil {
			s.of[name] = bytes.Clone(value)
		}
		kept = bytes.Clone(s.of[name])
		return nil
	})
	return kept, err
}
