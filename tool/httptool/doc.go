// Package httptool makes tools that send HTTP requests: from single definitions ([New]), and from selected operations of an
// OpenAPI document ([Import]).
//
// The model sets only the declared parameters. Each value is encoded for its place: a path value cannot leave its segment, a query value
// cannot start another parameter, and a header value cannot end its line. The method, the host, the header names and the credentials come
// from the definition. Requests are sent by a client of package egress, whose rules restrict their destinations.
//
// Only requests of tools that are read-only or idempotent are repeated; repeated requests of an idempotent tool have the same
// Idempotency-Key.
package httptool
