package plain

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
)

// Fault describes what is wrong with an address or a certificate, and what to set, if err shows that; else it is empty. It names
// no host.
func Fault(err error) string {
	var untrusted *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch {
	case errors.Is(err, ErrSpoken), errors.As(err, &record) && string(record.RecordHeader[:]) == "HTTP/":
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
