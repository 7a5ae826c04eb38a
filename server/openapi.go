package server

import (
	_ "embed" // the document
	"net/http"
)

// document describes everything that the gateway serves, as OpenAPI 3.1.
//
//go:embed openapi.json
var document []byte

func openAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache")
	_, _ = w.Write(document) // the client may have disconnected
}
