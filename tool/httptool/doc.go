// Package httptool makes tools of HTTP requests: of requests that are described one by one, and of
// the operations of an OpenAPI document that are named.
//
// A model fills the declared parameters and nothing else. Each value goes to its place through an
// encoder that keeps it there: a path value cannot leave its segment, a query value cannot begin
// another one, a header value cannot end its line. Method, host, names of headers and credentials
// come from the definition. Requests go out through an egress client, which decides where to.
//
// A request is sent again only where the effect of its tool allows: tools that read, and idempotent
// ones, with the same Idempotency-Key each time.
package httptool
