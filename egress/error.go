package egress

import (
	"context"
	"errors"
)

// A Code says why a request did not go through.
type Code string

// The codes. Those up to CodeTLS mean that the request was not sent.
const (
	CodeURL              Code = "url_refused"      // no URL of plain form: user, odd host spelling, fragment of an address
	CodeScheme           Code = "scheme_refused"   // not among Rules.Schemes
	CodeHost             Code = "host_refused"     // not among Rules.Hosts
	CodePort             Code = "port_refused"     // not among Rules.Ports
	CodeAddress          Code = "address_refused"  // the name leads to an address that is not public
	CodeRedirectLimit    Code = "redirect_limit"   // more than Options.MaxRedirects
	CodeRedirectRefused  Code = "redirect_refused" // it would have lost the method, left https, or carried a body to another origin
	CodeResolve          Code = "resolve_failed"
	CodeConnect          Code = "connect_failed"
	CodeTLS              Code = "tls_failed"
	CodeTimeout          Code = "timeout"
	CodeCancelled        Code = "cancelled"
	CodeBodyTooLarge     Code = "body_too_large"     // Options.MaxBodyBytes, after decoding
	CodeEncodingRefused  Code = "encoding_refused"   // a Content-Encoding that was not asked for
	CodeCompressionRatio Code = "compression_ratio"  // the body grows out of proportion as it is decoded
	CodeBroken           Code = "broken"             // the exchange broke off, or was not HTTP within the limits
	CodeCredential       Code = "credential_missing" // what Client.With put before the guard has none that the server takes
)

var texts = map[Code]string{
	CodeURL:              "the address is not written in plain form",
	CodeScheme:           "the scheme is not allowed",
	CodeHost:             "the host is not allowed",
	CodePort:             "the port is not allowed",
	CodeAddress:          "the host leads to an address that is not public and not allowed",
	CodeRedirectLimit:    "too many redirects",
	CodeRedirectRefused:  "the redirect is not followed",
	CodeResolve:          "the host name cannot be resolved",
	CodeConnect:          "no connection could be made",
	CodeTLS:              "the TLS handshake failed",
	CodeTimeout:          "the time ran out",
	CodeCancelled:        "the request was cancelled",
	CodeBodyTooLarge:     "the response is too large",
	CodeEncodingRefused:  "the response has an encoding that was not asked for",
	CodeCompressionRatio: "the response is compressed beyond measure",
	CodeBroken:           "the exchange broke off",
	CodeCredential:       "there is no credential that the server takes",
}

// An Error says why a request did not go through. Its text is fixed for each code: it holds nothing
// of the request or the response.
type Error struct {
	Code Code
	// Refused says that a rule stopped the request, rather than the network.
	Refused bool
	// Unsent says that no server got the last hop of the request, the only one where there was no redirect.
	Unsent bool

	cause error // a context's error, that of Client.With, or nil
}

// Error returns the fixed text of the code.
func (e *Error) Error() string { return "egress: " + string(e.Code) + ": " + texts[e.Code] }

// Unwrap returns context.Canceled or context.DeadlineExceeded if that was the cause, with CodeCredential the error of the
// transport that adds credentials, and else nil.
func (e *Error) Unwrap() error { return e.cause }

// CodeOf returns the code of the first [Error] in err's tree, and "" if it holds none.
func CodeOf(err error) Code {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e.Code
	}
	return ""
}

func refuse(code Code) *Error { return &Error{Code: code, Refused: true, Unsent: true} }

func unsent(code Code) *Error { return &Error{Code: code, Unsent: true} }

// Plain returns the [Error] in err's tree. Any other error becomes one of fixed text: the errors of
// net/http name the whole URL, its query included.
func Plain(err error) *Error {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e
	}
	if errors.Is(err, context.Canceled) {
		return &Error{Code: CodeCancelled, cause: context.Canceled}
	}
	if t := (interface{ Timeout() bool })(nil); errors.Is(err, context.DeadlineExceeded) || errors.As(err, &t) && t.Timeout() {
		return &Error{Code: CodeTimeout, cause: context.DeadlineExceeded}
	}
	return &Error{Code: CodeBroken}
}
