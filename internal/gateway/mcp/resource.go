package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/tool"
)

// A resource is a Resource in the form of a tool, which reads it.
type resource struct {
	Resource
	spec  lathe.ToolSpec
	fits  *regexp.Regexp // URIs of a template; nil: the URI is no template
	parts []string
}

var readSchema = json.RawMessage(`{"type":"object","properties":{"uri":{"type":"string"},"parts":{"type":"object","additionalProperties":{"type":"string"}}},"required":["uri"],"additionalProperties":false}`)

func newResource(from *Resource) (*resource, error) {
	r := &resource{Resource: *from}
	r.Labels, r.Data, r.Match = slices.Clone(r.Labels), slices.Clone(r.Data), slices.Clone(r.Match)
	r.Values = maps.Clone(r.Values)
	if r.MaxBytes <= 0 {
		r.MaxBytes = defaultResource
	}
	kinds := 0
	for _, set := range []bool{r.Text != "", r.Data != nil, r.Read != nil, r.Files != nil} {
		if set {
			kinds++
		}
	}
	if err := errors.Join(checkName(r.Name), checkURI(r.URI), checkMatch(r.Match)); err != nil {
		return nil, err
	}
	var err error
	if r.fits, r.parts, err = newTemplate(r.URI); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(r.Values)) {
		if !slices.Contains(r.parts, name) {
			return nil, fmt.Errorf("there are values of %.80q, which is no part of the uri", name)
		}
	}
	switch {
	case kinds != 1:
		return nil, errors.New("it has exactly one of a text, data, a function and files")
	case r.Files != nil && r.fits != nil:
		return nil, errors.New("the uri of files has no parts")
	case r.Files != nil && !strings.HasSuffix(r.URI, "/"):
		return nil, errors.New("the uri of files ends in /")
	case r.Files == nil && r.Match != nil:
		return nil, errors.New("patterns go with files")
	case r.MaxBytes > maxResource:
		return nil, fmt.Errorf("it may have %d bytes, and at most %d are read", r.MaxBytes, maxResource)
	case len(r.Text) > r.MaxBytes || len(r.Data) > r.MaxBytes:
		return nil, fmt.Errorf("it has more than the %d bytes that it may have", r.MaxBytes)
	}
	r.spec = specOf("resource__", r.Name, r.Description, r.Labels, readSchema)
	return r, nil
}

// Spec implements lathe.Tool.
func (r *resource) Spec() *lathe.ToolSpec { return &r.spec }

// A reading is the output of the tool of a resource.
type reading struct {
	MediaType string  `json:"media_type"`
	Text      *string `json:"text,omitempty"` // nil: the content is a blob
}

// Call implements lathe.Tool.
func (r *resource) Call(ctx context.Context, args json.RawMessage) (*lathe.Output, error) {
	var in struct {
		URI   string            `json:"uri"`
		Parts map[string]string `json:"parts"`
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return nil, err
	}
	blob, err := r.blob(ctx, in.URI, in.Parts)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, tool.Fail(lathe.CodeInvalidArguments, "there is no such resource")
	}
	if err != nil {
		return nil, err
	}
	if len(blob.Data) > r.MaxBytes {
		return nil, tool.Fail(lathe.CodeOutputTooLarge, "the resource has more than %d bytes", r.MaxBytes)
	}
	kind := cmp.Or(blob.MediaType, sniff(blob.Data))
	out, was := &lathe.Output{}, reading{MediaType: kind}
	if isText(kind) && utf8.Valid(blob.Data) {
		was.Text = new(string(blob.Data))
	} else {
		out.Blobs = []lathe.Blob{{MediaType: kind, Data: blob.Data}}
	}
	out.Data, err = json.Marshal(was)
	return out, err
}

// blob returns the content at a URI. The error is fs.ErrNotExist if it has none.
func (r *resource) blob(ctx context.Context, uri string, parts map[string]string) (*lathe.Blob, error) {
	switch {
	case r.Files != nil:
		return r.file(uri)
	case r.Read != nil:
		b, err := r.Read(ctx, uri, parts)
		if err != nil {
			return nil, err
		}
		if b == nil {
			return nil, fs.ErrNotExist
		}
		if b.MediaType == "" {
			return &lathe.Blob{MediaType: r.MediaType, Data: b.Data}, nil
		}
		return b, nil
	case r.Data != nil:
		return &lathe.Blob{MediaType: r.MediaType, Data: r.Data}, nil
	}
	return &lathe.Blob{MediaType: cmp.Or(r.MediaType, "text/plain"), Data: []byte(fill(r.Text, r.parts, parts))}, nil
}

// find returns the resource with a URI, and the values of the parts if its URI is a template. It returns nil if none exists.
func (o *offering) find(uri string) (*resource, map[string]string) {
	if len(uri) > maxURI {
		return nil, nil
	}
	for _, r := range o.resources { // an exact URI takes precedence over folders and templates
		if r.fits == nil && r.Files == nil && r.URI == uri {
			return r, nil
		}
	}
	for _, r := range o.resources {
		switch {
		case r.Files != nil:
			if _, ok := r.pathOf(uri); ok {
				return r, nil
			}
		case r.fits != nil:
			if m := r.fits.FindStringSubmatch(uri); m != nil {
				parts := map[string]string{}
				for i, name := range r.parts {
					text, err := url.PathUnescape(m[i+1])
					if err != nil || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
						return nil, nil
					}
					parts[name] = text
				}
				return r, parts
			}
		}
	}
	return nil, nil
}

// sniff returns the media type by the first bytes of data.
func sniff(data []byte) string {
	if len(data) == 0 {
		return "text/plain"
	}
	kind, _, _ := strings.Cut(http.DetectContentType(data), ";")
	return kind
}

// isText reports whether content of a media type is sent as text.
func isText(kind string) bool {
	kind, _, _ = strings.Cut(kind, ";")
	kind = strings.TrimSpace(kind)
	switch kind {
	case "application/json", "application/xml", "application/yaml", "application/toml", "application/javascript", "application/sql", "image/svg+xml":
		return true
	}
	return strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml")
}
