// Package admission bounds the number of requests served at once and the request rate of each key. The middleware of package server calls
// it for each request; the route determines its [Pool].
package admission
