package egress

import (
	"context"
	"errors"
)

// A Code is the reason why a request failed.
type Code string

// The codes. Those up to CodeTLS mean that the request, or the last one after redirects, was not sent.
const (
	CodeURL              Code = "url_refused"        // the URL has user information, no host, an unusual form of the host, or port 0
	CodeScheme           Code = "scheme_refused"     // the scheme is not among Rules.Schemes
	CodeHost             Code = "host_refused"       // the host is not among Rules.Hosts
	CodePort             Code = "port_refused"       // the port is not among Rules.Ports
	CodeAddress          Code = "address_refused"    // the host resolves to an address that is neither public nor in Rules.Private
	CodeRedirectLimit    Code = "redirect_limit"     // there were more redirects than Options.MaxRedirects
	CodeRedirectRefused  Code = "redirect_refused"   // the redirect would change the method, leave https, or send a body to another origin
	CodeResolve          Code = "resolve_failed"     // the host name could not be resolved, or has no address
	CodeConnect          Code = "connect_failed"     // no address of the host accepted a connection within Options.DialTimeout
	CodeTLS              Code = "tls_failed"         // the TLS handshake failed, or the certificate is not valid
	CodeTimeout          Code = "timeout"            // a timeout of Options or the deadline of the context was exceeded; see also CodeConnect
	CodeCancelled        Code = "cancelled"          // the context was cancelled
	CodeBodyTooLarge     Code = "body_too_large"     // the decoded body is larger than Options.MaxBodyBytes
	CodeEncodingRefused  Code = "encoding_refused"   // the response has a Content-Encoding other than gzip
	CodeCompressionRatio Code = "compression_ratio"  // the decoded body is too large for its compressed size
	CodeBroken           Code = "broken"             // the connection was lost, or the response was not HTTP within the limits
	CodeCredential       Code = "credential_missing" // the transport of Client.With returned an error
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

// An Error is the reason why a request failed. Its text is fixed for each code: it contains nothing of the request or the response.
type Error struct {
	Code Code
	// Refused says that a rule stopped the request; false: it failed for another reason, such as the network.
	Refused bool
	// Unsent says that the request, or the last one after redirects, was not sent to a server, so that it had no effect there.
	Unsent bool

	cause error // an error of the context, the error of the transport of Client.With, or nil
}

// Error returns the fixed text of the code.
func (e *Error) Error() string { return "egress: " + string(e.Code) + ": " + texts[e.Code] }

// Unwrap returns context.Canceled or context.DeadlineExceeded if that was the cause. If the code is CodeCredential, it returns the error of
// the transport that adds credentials. In all other cases it returns nil.
func (e *Error) Unwrap() error { return e.cause }

// CodeOf returns the code of the first [Error] in the tree of err, or "" if the tree contains none.
func CodeOf(err error) Code {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e.Code
	}
	return ""
}

func refuse(code Code) *Error { return &Error{Code: code, Refused: true, Unsent: true} }

func unsent(code Code) *Error { return &Error{Code: code, Unsent: true} }

// Plain returns an error whose text is safe to show: the errors of net/http contain the whole URL with its query. It returns the first
// [Error] in the tree of err. If the tree contains none, it returns a new Error with a fixed text. err must not be nil.
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
