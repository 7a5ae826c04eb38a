package provider

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"

	"github.com/lathe-run/lathe/internal/plain"
)

// causeOf describes an error of the transport for logs and events, without addresses. It returns "" for an unknown kind of error. Errors
// that wrap others, such as a *url.Error, may contain an address, so only texts of known errors are returned.
func causeOf(err error) string {
	for _, timeout := range []error{errOpenTimeout, errClientTimeout, errReadTimeout} {
		if errors.Is(err, timeout) {
			return timeout.Error()
		}
	}
	var errno syscall.Errno
	var lookup *net.DNSError
	fault := plain.Fault(err)
	switch {
	case fault != "":
		return fault
	case errors.As(err, &lookup):
		return "the host's name cannot be resolved"
	case errors.As(err, &errno):
		return errno.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	}
	return ""
}
