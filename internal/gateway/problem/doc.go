// Package problem contains the error responses of the gateway: a failure as a [Problem], the problem of a failed run ([Ended]), and its
// form in the protocol of each client ([Client.Fail]). Package server and the packages below internal/gateway create and return problems;
// the middleware of package server writes them.
//
// A Problem belongs to the request that it answers and is used by one goroutine at a time. The functions have no state.
package problem
