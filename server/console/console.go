// Package console is the page that the gateway shows to a person: models, tools, a chat that streams, and
// the last runs. It is plain HTML, CSS and ES modules, embedded as they are; they load nothing from
// elsewhere, and a strict content security policy holds them to that.
package console

import (
	"embed"
	"io/fs"
	"net/http"
)

//go:embed page
var files embed.FS

// policy lets the page load its own files and ask its own server, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Patterns are those under which a [http.ServeMux] finds the page and its files.
func Patterns() []string {
	patterns := []string{"GET /{$}"}
	entries, err := files.ReadDir("page")
	if err != nil {
		panic(err) // the files are part of the program
	}
	for _, e := range entries {
		patterns = append(patterns, "GET /"+e.Name())
	}
	return patterns
}

// Handler serves the page at / and its files beside it. Paths are relative to the page, so that it can
// be served under a prefix. It asks for no key: what the page shows it has to ask for, with one.
func Handler() http.Handler {
	page, err := fs.Sub(files, "page")
	if err != nil {
		panic(err) // the files are part of the program
	}
	serve := http.FileServerFS(page)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-cache")
		serve.ServeHTTP(w, r)
	})
}
