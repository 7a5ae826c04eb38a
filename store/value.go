package store

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
)

const (
	// MaxValue bounds a value of a [ValueKeeper], in bytes.
	MaxValue = 4096
	// MaxValueName bounds its name, in bytes.
	MaxValueName = 256
	// MaxValues bounds the values that [ValueKeeper].Values returns.
	MaxValues = 10_000
)

// A ValueKeeper keeps small values under names that all processes of a store share and that change, such as which tools an
// operator has disabled. The last write of a name counts. Exports of runs do not have them. Its methods may be called from
// several goroutines at once.
type ValueKeeper interface {
	// SetValue keeps a value under a name, in place of an earlier one. An empty value removes the name. A name that is empty or
	// above [MaxValueName], and a value above [MaxValue], are errors of code invalid_request.
	SetValue(ctx context.Context, name string, value []byte) error
	// Values returns the values whose names begin with prefix: the first [MaxValues] by name.
	Values(ctx context.Context, prefix string) (map[string][]byte, error)
}

// FitsValue returns an error if the value cannot be kept under the name.
func FitsValue(op, name string, value []byte) error {
	if name == "" || len(name) > MaxValueName || len(value) > MaxValue {
		return &lathe.Error{Code: lathe.CodeInvalidRequest, Op: op, Err: fmt.Errorf("a name of %d bytes and a value of %d: at most %d and %d fit", len(name), len(value), MaxValueName, MaxValue)}
	}
	return nil
}

var _ ValueKeeper = (*NamedValues)(nil)

// NamedValues is the part of a [Memory] that implements [ValueKeeper].
type NamedValues struct {
	*core
	of map[string][]byte
}

// SetValue implements [ValueKeeper].
func (s *NamedValues) SetValue(ctx context.Context, name string, value []byte) error {
	const op = "set a value"
	if err := FitsValue("store: "+op, name, value); err != nil {
		return err
	}
	return s.do(ctx, op, func(time.Time) error {
		if s.of[name] = bytes.Clone(value); len(value) == 0 {
			delete(s.of, name)
		}
		return nil
	})
}

// Values implements [ValueKeeper].
func (s *NamedValues) Values(ctx context.Context, prefix string) (map[string][]byte, error) {
	out := map[string][]byte{}
	err := s.do(ctx, "read values", func(time.Time) error {
		for _, name := range slices.Sorted(maps.Keys(s.of)) {
			if strings.HasPrefix(name, prefix) && len(out) < MaxValues {
				out[name] = bytes.Clone(s.of[name])
			}
		}
		return nil
	})
	return out, err
}
