// Package console is the web console of the gateway: chat, approvals, runs, tools and the state of the server. Its sources are TypeScript
// in web/; the files built from them are in dist/ and are embedded. They load nothing from other origins, which a strict content security
// policy enforces.
package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

//go:embed dist
var built embed.FS

// policy is the Content-Security-Policy of the console: it may load its own files, show pictures that the script has made of data, and send requests to its own server, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob:; manifest-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// screens are the paths of the console's screens, as [http.ServeMux] reads them. The same page is served for all of them; its
// script shows the screen of the address. web/src/screens/index.ts has the same list.
var screens = []string{
	"/chats/{id}", "/approvals", "/runs", "/runs/{id}", "/runs/{id}/replay", "/tools", "/tools/{name}", "/servers", "/pins", "/limits",
	"/policy", "/audit", "/health", "/stats", "/evals", "/evals/{id}", "/settings",
}

// Patterns returns the patterns of a [http.ServeMux] for the console and its files.
func Patterns() []string {
	patterns := []string{"GET /{$}", "GET /assets/{name}", "GET /NOTICE.txt"}
	for _, screen := range screens {
		patterns = append(patterns, "GET "+screen)
	}
	return patterns
}

// Handler serves the screens and, under /assets/, their files. Addresses in the page are relative to its path, so that the console can be
// served under a prefix. The handler requires no key: the page requests all data from the API, with the key of the user.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-cache")
		name := strings.TrimPrefix(r.URL.EscapedPath(), "/")
		switch {
		case strings.HasPrefix(name, "assets/") || name == "NOTICE.txt":
			f, ok := assets()[name]
			if !ok {
				http.NotFound(w, r)
				return
			}
			if name != "NOTICE.txt" { // the name contains a hash of the content
				h.Set("Cache-Control", "public, max-age=31536000, immutable")
			}
			f.serve(w, r)
		case name == "" || isScreen("/"+name):
			pageAt(strings.Count(name, "/")).serve(w, r)
		default:
			http.NotFound(w, r)
		}
	})
}

// A file is one built file, ready to be sent.
type file struct {
	contentType string
	etag        string
	plain       []byte
	gzipped     []byte // nil if compression does not make it smaller
}

// types are the content types of the built files. [mime.TypeByExtension] is not used because its results differ between systems.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml", ".webmanifest": "application/manifest+json", ".txt": "text/plain; charset=utf-8",
}

func newFile(name string, content []byte) *file {
	sum := sha256.Sum256(content)
	f := &file{contentType: types[path.Ext(name)], etag: `"` + hex.EncodeToString(sum[:12]) + `"`, plain: content}
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	_, _ = z.Write(content)                               // writes to memory do not fail
	_ = z.Close()
	if b.Len() < len(content) {
		f.gzipped = b.Bytes()
	}
	return f
}

func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.contentType)
	h.Set("Vary", "Accept-Encoding")
	content, etag := f.plain, f.etag
	if f.gzipped != nil && acceptsGzip(r.Header.Get("Accept-Encoding")) {
		h.Set("Content-Encoding", "gzip")
		content, etag = f.gzipped, strings.TrimSuffix(f.etag, `"`)+`-gzip"`
	}
	h.Set("Etag", etag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

// acceptsGzip reports whether the value of an Accept-Encoding header lists gzip with a weight other than zero.
func acceptsGzip(list string) bool {
	for coding := range strings.SplitSeq(list, ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(coding), ";")
		if strings.TrimSpace(name) != "gzip" {
			continue
		}
		q := strings.TrimSpace(weight)
		return !strings.HasPrefix(q, "q=") || strings.Trim(q[2:], "0.") != ""
	}
	return false
}

// assets returns the built files by name, except for the page itself.
var assets = sync.OnceValue(func() map[string]*file {
	out := map[string]*file{}
	for _, name := range append([]string{"NOTICE.txt"}, assetNames()...) {
		out[name] = newFile(name, read(name))
	}
	return out
})

func assetNames() (names []string) {
	entries, err := built.ReadDir("dist/assets")
	if err != nil {
		panic(err) // the files are part of the program
	}
	for _, e := range entries {
		names = append(names, "assets/"+e.Name())
	}
	return names
}

func read(name string) []byte {
	b, err := built.ReadFile("dist/" + name)
	if err != nil {
		panic(err) // the files are part of the program
	}
	return b
}

// pages are the variants of the page for each depth of a path: relative addresses begin with one ../ for each folder of the path.
var pages = sync.OnceValue(func() []*file {
	deepest := 0
	for _, s := range screens {
		deepest = max(deepest, strings.Count(s, "/")-1)
	}
	var out []*file
	for depth := range deepest + 1 {
		up := strings.Repeat("../", depth)
		if depth == 0 {
			up = "./"
		}
		out = append(out, newFile("index.html", bytes.ReplaceAll(read("index.html"), []byte(`="./`), []byte(`="`+up))))
	}
	return out
})

func pageAt(depth int) *file { return pages()[depth] }

func isScreen(p string) bool {
	parts := strings.Split(p, "/")
	return slices.ContainsFunc(screens, func(screen string) bool {
		return slices.EqualFunc(strings.Split(screen, "/"), parts, func(want, part string) bool {
			return want == part || part != "" && strings.HasPrefix(want, "{")
		})
	})
}
