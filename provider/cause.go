package provider

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"

	"github.com/lathe-run/lathe/internal/plain"
)

// causeOf names the kind of a transport's error without addresses, for logs and events.
func causeOf(err error) string {
	var errno syscall.Errno
	var lookup *net.DNSError
	switch {
	case errors.Is(err, errOpenTimeout), errors.Is(err, errClientTimeout), errors.Is(err, errReadTimeout):
		return err.Error()
	case plain.Fault(err) != "":
		return plain.Fault(err)
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
