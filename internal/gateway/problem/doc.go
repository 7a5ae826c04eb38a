// Package problem has the error responses of the gateway: what a failure is ([Problem]), which one a run that failed is ([Ended]), and how
// clients of each protocol read it ([Client.Fail]). Package server and the packages below internal/gateway make and return problems; the middleware
// of package server writes them.
//
// A Problem belongs to the request that it answers: one goroutine at a time uses it. The functions keep no state.
package problem
