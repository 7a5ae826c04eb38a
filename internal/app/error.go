package app

import (
	"errors"
	"fmt"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/config"
)

// The errors of this package are *lathe.Error values. Their codes say what to correct:
//
//   - invalid_config: the configuration
//   - invalid_request: an argument of the caller, such as the name of a model or a script
//   - unavailable: a server that the configuration requires is not ready
//   - not_found, conflict, internal: the store, the audit log or another file

// Op is the [lathe.Error.Op] of the errors of this package.
const Op = "app"

func invalidConfig(err error) error {
	return &lathe.Error{Code: lathe.CodeInvalidConfig, Op: Op, Err: err}
}

func invalidRequest(format string, args ...any) error {
	return &lathe.Error{Code: lathe.CodeInvalidRequest, Op: Op, Err: fmt.Errorf(format, args...)}
}

func failed(err error) error {
	return &lathe.Error{Code: lathe.CodeInternal, Op: Op, Err: err}
}

// at prefixes the cause of err with the key of the configuration that led to it, and keeps the code.
func at(key string, err error) error {
	return &lathe.Error{Code: lathe.CodeOf(err), Op: Op, Err: fmt.Errorf("%s: %w", key, Cause(err))}
}

// Cause returns the cause of the first [lathe.Error] in err's tree, or err if the tree holds no lathe.Error: the text for a person,
// without operation and code.
func Cause(err error) error {
	var e *lathe.Error
	if errors.As(err, &e) && e.Err != nil {
		return e.Err
	}
	return err
}

// problem says what is wrong with a key of the configuration.
func problem(key, format string, args ...any) config.Problem {
	return config.Problem{Key: key, Message: fmt.Sprintf(format, args...)}
}
