package server

import (
	_ "embed" // for document
	"net/http"
)

// document is the OpenAPI 3.1 description of all routes of the gateway.
//
//go:embed openapi.json
var document []byte

func openAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache")
	_, _ = w.Write(document) // the client may have disconnected
}
