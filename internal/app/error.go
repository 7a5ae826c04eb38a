package app

import (
	"errors"
	"fmt"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/config"
)

// The errors of this package are *lathe.Error values. Their codes indicate what must be corrected:
//
//  - invalid_config: the configuration
//  - invalid_request: an argument of the caller, such as the name of a model or a script
//  - unavailable: a server that the configuration requires is not ready
//  - not_found, conflict, internal: the store, the audit log or another file

// Op is the Op of this package's *[lathe.Error] values.
const Op = "app"

func configError(err error) error {
	return lathe.CodeInvalidConfig.Wrap(Op, err)
}

func invalidConfig(format string, args ...any) error {
	return lathe.CodeInvalidConfig.Errorf(Op, format, args...)
}

func invalidRequest(format string, args ...any) error {
	return lathe.CodeInvalidRequest.Errorf(Op, format, args...)
}

func failed(err error) error {
	return lathe.CodeInternal.Wrap(Op, err)
}

// join joins err and the error of closing what was opened before. Without the latter it returns err unchanged, so that its code applies.
func join(err, closing error) error {
	if closing == nil {
		return err
	}
	return errors.Join(err, closing)
}

// at prefixes the cause of err with a key of the configuration. The code does not change.
func at(key string, err error) error {
	return lathe.CodeOf(err).Errorf(Op, "%s: %w", key, Cause(err))
}

// Cause returns the Err of the first *[lathe.Error] in err, whose text has neither the operation nor the code of that error. If err wraps
// no such error, or its Err is nil, Cause returns err.
func Cause(err error) error {
	var e *lathe.Error
	if errors.As(err, &e) && e.Err != nil {
		return e.Err
	}
	return err
}

// problem returns a problem of a key of the configuration.
func problem(key, format string, args ...any) config.Problem {
	return config.Problem{Key: key, Message: fmt.Sprintf(format, args...)}
}
