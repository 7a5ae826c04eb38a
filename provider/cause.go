package provider

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"syscall"

	"github.com/lathe-run/lathe/internal/plain"
)

// misread says what is wrong with the address where err shows that; else it is empty.
func misread(err error) string {
	var untrusted *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch {
	case errors.Is(err, plain.ErrSpoken), errors.As(err, &record) && string(record.RecordHeader[:]) == "HTTP/":
		return "the server speaks plain HTTP: write http:// in place of https:// in the base URL"
	case errors.As(err, &untrusted):
		return "the server's certificate is not trusted (" + certificateFault(untrusted.Err) + "): SSL_CERT_FILE names a file of further authorities"
	}
	return ""
}

func certificateFault(err error) string {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &unknown):
		return "unknown authority"
	case errors.As(err, &name):
		return "it is for another host"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "expired or not yet valid"
	}
	return "invalid"
}

// causeOf names the kind of a transport's error without addresses, for logs and events.
func causeOf(err error) string {
	var errno syscall.Errno
	var lookup *net.DNSError
	switch {
	case errors.Is(err, errOpenTimeout), errors.Is(err, errClientTimeout), errors.Is(err, errReadTimeout):
		return err.Error()
	case misread(err) != "":
		return misread(err)
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
