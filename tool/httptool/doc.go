// Package httptool makes tools that send HTTP requests: from single definitions ([New]), and from selected operations of an
// OpenAPI document ([Import]).
//
// The model sets only the declared parameters. Each value is encoded for its place: a path value cannot leave its segment, a
// query value cannot start another parameter, and a header value cannot end its line. The method, the host, the header names
// and the credentials come from the definition. Requests are sent through a client of package egress, whose rules restrict
// their destinations.
//
// A request is repeated only for tools that read or are idempotent; repeated requests of an idempotent tool have the same
// Idempotency-Key.
package httptool
