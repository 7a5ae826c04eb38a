package console_test

import (
	"cmp"
	"compress/gzip"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/gateway/console"
)

func TestHandlerServesThePage(t *testing.T) {
	t.Parallel()
	paths := map[string]string{"/": "text/html; charset=utf-8", "/runs/run_1": "text/html; charset=utf-8", "/tools/a%2Fb": "text/html; charset=utf-8", "/NOTICE.txt": "text/plain; charset=utf-8"}
	b, err := os.ReadFile("dist/index.html")
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]string{".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml", ".webmanifest": "application/manifest+json"}
	for _, m := range regexp.MustCompile(`"\./(assets/[^"]+)"`).FindAllStringSubmatch(string(b), -1) {
		paths["/"+m[1]] = types[filepath.Ext(m[1])]
	}
	if len(paths) != 9 {
		t.Fatalf("the page has other files than a script, a style sheet, a manifest and two icons: %v", paths)
	}
	for path, contentType := range paths {
		w := httptest.NewRecorder()
		console.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != contentType {
			t.Errorf("%s: %d %s", path, w.Code, w.Header().Get("Content-Type"))
		}
		immutable := strings.Contains(w.Header().Get("Cache-Control"), "immutable")
		if w.Header().Get("Etag") == "" || immutable != strings.HasPrefix(path, "/assets/") {
			t.Errorf("%s: %v", path, w.Header())
		}
		again := httptest.NewRequest(http.MethodGet, path, nil)
		again.Header.Set("If-None-Match", w.Header().Get("Etag"))
		cached := httptest.NewRecorder()
		if console.Handler().ServeHTTP(cached, again); cached.Code != http.StatusNotModified {
			t.Errorf("%s: %d for the same entity tag", path, cached.Code)
		}
		if up := strings.Repeat("../", strings.Count(path, "/")-1); contentType == types[".html"] && !strings.Contains(w.Body.String(), `src="`+cmp.Or(up, "./")+`assets/app-`) {
			t.Errorf("%s: the page looks for its files elsewhere: %s", path, w.Body)
		}
		csp := w.Header().Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"} {
			if !strings.Contains(csp, want) {
				t.Errorf("%s: the policy does not say %s: %s", path, want, csp)
			}
		}
		if strings.Contains(csp, "unsafe") {
			t.Errorf("%s: %s", path, csp)
		}
	}
}

// A client that takes gzip gets it, with an entity tag of its own.
func TestHandlerCompresses(t *testing.T) {
	t.Parallel()
	for accept, want := range map[string]string{"": "", "br, gzip": "gzip", "gzip;q=0": "", "gzip; q=0.5": "gzip", "identity": ""} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Accept-Encoding", accept)
		w := httptest.NewRecorder()
		console.Handler().ServeHTTP(w, r)
		body := io.Reader(w.Body)
		if got := w.Header().Get("Content-Encoding"); got != want || strings.Contains(w.Header().Get("Etag"), "gzip") != (want != "") {
			t.Errorf("%q: %q %s", accept, got, w.Header().Get("Etag"))
		} else if want != "" {
			z, err := gzip.NewReader(body)
			if err != nil {
				t.Fatal(err)
			}
			body = z
		}
		if b, err := io.ReadAll(body); err != nil || !strings.Contains(string(b), `<div id="app">`) {
			t.Errorf("%q: %v %q", accept, err, b)
		}
	}
}

func TestHandlerKnowsNothingElse(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/assets/none.js", "/assets/", "/dist/index.html", "/index.html", "/runs/a/b/c", "/sources.txt"} {
		w := httptest.NewRecorder()
		console.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// Text from outside can become markup only by ways that the page does not use, and the page asks
// no host but its own server.
func TestT27_PageIsPlain(t *testing.T) {
	t.Parallel()
	err := fs.WalkDir(os.DirFS("web/src"), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile("web/src/" + path)
		if err != nil {
			return err
		}
		for _, bad := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "dangerouslySetInnerHTML", "document.write", "eval(", "new Function", "onclick=\"", "javascript:"} {
			if strings.Contains(string(b), bad) {
				t.Errorf("%s has %s", path, bad)
			}
		}
		for _, m := range regexp.MustCompile(`https?://[^"' )>]+`).FindAllString(string(b), -1) {
			if m != "http://www.w3.org/2000/svg" {
				t.Errorf("%s has the address %s", path, m)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func ExampleHandler() {
	http.Handle("/", console.Handler())
}
