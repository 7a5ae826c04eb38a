package mcp

import (
	"cmp"
	"io"
	"io/fs"
	"net/url"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/tool"
)

// Limits of the files of one resource.
const (
	maxFiles  = 1_000  // largest number of files in a list
	maxWalked = 10_000 // largest number of directory entries visited for a list
)

// pathOf returns the path of the file that a URI names; false if the URI is not valid or the file is not offered.
func (r *resource) pathOf(uri string) (string, bool) {
	rest, ok := strings.CutPrefix(uri, r.URI)
	if !ok || rest == "" || strings.ContainsAny(rest, "?#") {
		return "", false
	}
	segments := strings.Split(rest, "/")
	for i, s := range segments {
		name, err := url.PathUnescape(s)
		if err != nil || strings.ContainsAny(name, "/\\\x00") || !utf8.ValidString(name) {
			return "", false
		}
		segments[i] = name
	}
	name := strings.Join(segments, "/")
	return name, fs.ValidPath(name) && r.offers(name)
}

func (r *resource) uriOf(name string) string {
	segments := strings.Split(name, "/")
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	return r.URI + strings.Join(segments, "/")
}

// offers reports whether clients may see a path: no part of it begins with a dot, and it matches Match if that is set.
func (r *resource) offers(name string) bool {
	for s := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(s, ".") {
			return false
		}
	}
	if r.Match == nil {
		return true
	}
	for _, p := range r.Match {
		what := name
		if !strings.Contains(p, "/") {
			what = path.Base(name)
		}
		if ok, err := path.Match(p, what); err == nil && ok {
			return true
		}
	}
	return false
}

// file returns the content of the file that a URI names. The error is fs.ErrNotExist for anything but an offered regular file.
func (r *resource) file(uri string) (*lathe.Blob, error) {
	name, ok := r.pathOf(uri)
	if !ok {
		return nil, fs.ErrNotExist
	}
	info, err := fs.Stat(r.Files, name)
	if err != nil || !info.Mode().IsRegular() { // a link that leads out of the folder, a pipe or a device
		return nil, fs.ErrNotExist
	}
	f, err := r.Files.Open(name)
	if err != nil {
		return nil, fs.ErrNotExist
	}
	defer func() { _ = f.Close() }()
	if info, err = f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fs.ErrNotExist
	}
	b, err := io.ReadAll(io.LimitReader(f, int64(r.MaxBytes)+1))
	if err != nil {
		return nil, err
	}
	if len(b) > r.MaxBytes {
		return nil, tool.Fail(lathe.CodeOutputTooLarge, "the file has more than %d bytes", r.MaxBytes)
	}
	return &lathe.Blob{MediaType: cmp.Or(r.MediaType, kindOf(name, b)), Data: b}, nil
}

// list returns the offered files in the order of their paths, at most maxFiles of them.
func (r *resource) list() (out []*mcp.Resource) {
	walked := 0
	_ = fs.WalkDir(r.Files, ".", func(name string, d fs.DirEntry, err error) error {
		if walked++; walked > maxWalked || len(out) >= maxFiles {
			return fs.SkipAll
		}
		hidden := name != "." && strings.HasPrefix(path.Base(name), ".")
		if err != nil || hidden {
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
			return nil //nolint:nilerr // files that cannot be read are not listed
		}
		if d.IsDir() || !r.offers(name) || !utf8.ValidString(name) || strings.Contains(name, "\\") {
			return nil
		}
		info, serr := fs.Stat(r.Files, name)
		if serr != nil || !info.Mode().IsRegular() {
			return nil //nolint:nilerr // files that cannot be read are not listed
		}
		out = append(out, &mcp.Resource{Name: name, URI: r.uriOf(name), MIMEType: cmp.Or(r.MediaType, byExtension(name)), Size: info.Size()})
		return nil
	})
	return out
}

// A stamp is the size and modification time of a file. It differs if the file has changed or was removed.
type stamp struct {
	size int64
	when time.Time
	gone bool
}

func (r *resource) stamp(uri string) stamp {
	if r.Files == nil {
		return stamp{}
	}
	name, ok := r.pathOf(uri)
	if !ok {
		return stamp{gone: true}
	}
	info, err := fs.Stat(r.Files, name)
	if err != nil {
		return stamp{gone: true}
	}
	return stamp{size: info.Size(), when: info.ModTime()}
}

// kinds are media types by file name extension. The table is fixed so that results are the same on every machine.
var kinds = map[string]string{
	".txt": "text/plain", ".log": "text/plain", ".md": "text/markdown", ".csv": "text/csv", ".tsv": "text/tab-separated-values",
	".html": "text/html", ".htm": "text/html", ".css": "text/css", ".js": "text/javascript", ".xml": "application/xml",
	".json": "application/json", ".yaml": "application/yaml", ".yml": "application/yaml", ".toml": "application/toml", ".sql": "application/sql",
	".svg": "image/svg+xml", ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp",
	".pdf": "application/pdf", ".wav": "audio/wav", ".mp3": "audio/mpeg", ".ogg": "audio/ogg", ".zip": "application/zip",
}

func byExtension(name string) string { return kinds[strings.ToLower(path.Ext(name))] }

// kindOf returns the media type of a file. The extension decides unless the bytes contradict it: a text type requires text, and an image
// type requires bytes of that image format.
func kindOf(name string, b []byte) string {
	kind, seen := byExtension(name), sniff(b)
	text := utf8.Valid(b) && !strings.Contains(string(b), "\x00")
	switch {
	case kind == "" && text:
		return "text/plain"
	case kind == "":
		return seen
	case isText(kind) && !text:
		return "application/octet-stream"
	case strings.HasPrefix(kind, "image/") && !isText(kind) && seen != kind:
		return "application/octet-stream"
	}
	return kind
}
