// Package admission bounds the requests that are served at once and the rate of those of each key. The middleware of package server calls it for
// each request, and the routes say which [Pool] has its place.
package admission
