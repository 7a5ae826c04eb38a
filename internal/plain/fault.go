package plain

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
)

// Fault returns a description of a wrong scheme or a certificate error, and the setting that corrects it, or "" if err is neither. The text
// contains no host name.
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
