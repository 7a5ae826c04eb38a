package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lathe-run/lathe/internal/schema"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/tool/httptool"
)

// An operation is one of the document.
type operation struct {
	Method, Path string
	Open         bool // asks for no key
	Example      []byte
	body         *schema.Schema // of JSON in a request; nil: none
	match        *regexp.Regexp
	responses    map[string]map[string]content // by status and content type
}

type content struct {
	body  *schema.Schema
	event *schema.Schema // of each line or event of the body
}

// A document is openapi.json, with schemas that allow nothing beyond what they name.
type document struct{ ops []*operation }

var read = sync.OnceValues(func() (*document, error) {
	raw, err := os.ReadFile("openapi.json")
	if err != nil {
		return nil, err
	}
	var doc struct {
		Paths      map[string]map[string]json.RawMessage
		Components struct {
			Schemas   map[string]any
			Responses map[string]json.RawMessage
		}
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, err
	}
	for name, s := range doc.Components.Schemas {
		doc.Components.Schemas[name] = closed(s)
	}
	compiled := map[string]*schema.Schema{} // by the schema's JSON
	compile := func(s any) (*schema.Schema, error) {
		if s == nil {
			return nil, nil
		}
		key, err := json.Marshal(closed(s))
		if err != nil || compiled[string(key)] != nil {
			return compiled[string(key)], err
		}
		b, err := json.Marshal(map[string]any{"allOf": []any{s}, "$defs": referred(doc.Components.Schemas, key)})
		if err != nil {
			return nil, err
		}
		compiled[string(key)], err = schema.Compile(bytes.ReplaceAll(b, []byte(components), []byte("#/$defs/")))
		return compiled[string(key)], err
	}
	d := &document{}
	for path, members := range doc.Paths {
		for method, raw := range members {
			if method == "parameters" {
				continue
			}
			op := &operation{Method: strings.ToUpper(method), Path: path, responses: map[string]map[string]content{}}
			one := "[^/]+"
			if strings.Contains(path, "/models/") { // whose names may have slashes
				one = ".+"
			}
			op.match = regexp.MustCompile("^" + regexp.MustCompile(`\\\{[a-z]+\\\}`).ReplaceAllString(regexp.QuoteMeta(path), one) + "$")
			var o struct {
				Security    *[]any
				RequestBody struct {
					Content map[string]struct {
						Schema  any
						Example json.RawMessage
					}
				}
				Responses map[string]json.RawMessage
			}
			if err := json.Unmarshal(raw, &o); err != nil {
				return nil, fmt.Errorf("%s %s: %w", method, path, err)
			}
			sent := o.RequestBody.Content["application/json"]
			op.Open, op.Example = o.Security != nil, sent.Example
			if op.body, err = compile(sent.Schema); err != nil {
				return nil, fmt.Errorf("%s %s: %w", method, path, err)
			}
			for status, raw := range o.Responses {
				var r struct {
					Ref     string `json:"$ref"`
					Content map[string]struct {
						Schema any
						Event  any `json:"x-event-data"`
					}
				}
				if err := json.Unmarshal(raw, &r); err != nil {
					return nil, err
				}
				if r.Ref != "" {
					if err := json.Unmarshal(doc.Components.Responses[r.Ref[strings.LastIndexByte(r.Ref, '/')+1:]], &r); err != nil {
						return nil, err
					}
				}
				op.responses[status] = map[string]content{}
				for ct, c := range r.Content {
					body, err := compile(c.Schema)
					if err != nil {
						return nil, fmt.Errorf("%s %s %s: %w", method, path, status, err)
					}
					event, err := compile(c.Event)
					if err != nil {
						return nil, fmt.Errorf("%s %s %s: %w", method, path, status, err)
					}
					op.responses[status][ct] = content{body, event}
				}
			}
			d.ops = append(d.ops, op)
		}
	}
	slices.SortFunc(d.ops, func(a, b *operation) int { return strings.Compare(a.Path+" "+a.Method, b.Path+" "+b.Method) })
	return d, nil
})

const components = "#/components/schemas/"

var reference = regexp.MustCompile(`"\$ref":"` + components + `([^"]+)"`)

// referred returns those of the schemas that JSON refers to, directly or through others.
func referred(schemas map[string]any, raw []byte) map[string]any {
	found := map[string]any{}
	for open := [][]byte{raw}; len(open) > 0; open = open[1:] {
		for _, m := range reference.FindAllSubmatch(open[0], -1) {
			if name := string(m[1]); found[name] == nil {
				found[name] = schemas[name]
				if b, err := json.Marshal(schemas[name]); err == nil {
					open = append(open, b)
				}
			}
		}
	}
	return found
}

// closed returns the schema with every object closed that names its members and does not say more.
func closed(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if _, has := v["additionalProperties"]; v["properties"] != nil && !has {
			v["additionalProperties"] = false
		}
		for k, m := range v {
			v[k] = closed(m)
		}
	case []any:
		for i := range v {
			v[i] = closed(v[i])
		}
	}
	return v
}

func theDocument(t testing.TB) *document {
	t.Helper()
	d, err := read()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *document) operation(method, path string) *operation {
	for _, op := range d.ops {
		if op.Method == method && op.match.MatchString(path) {
			return op
		}
	}
	return nil
}

// described is a transport that holds each answer against the document.
type described struct {
	t    testing.TB
	doc  *document
	next http.RoundTripper
}

func (d *described) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := d.next.RoundTrip(r)
	if err != nil || r.Method == http.MethodOptions || r.Method == http.MethodHead {
		return resp, err
	}
	name := fmt.Sprintf("%s %s: %d", r.Method, r.URL.Path, resp.StatusCode)
	op := d.doc.operation(r.Method, r.URL.EscapedPath())
	if op == nil {
		if resp.StatusCode < 400 {
			d.t.Errorf("%s: openapi.json has no such operation", name)
		}
		return resp, nil
	}
	want, ok := op.responses[fmt.Sprint(resp.StatusCode)]
	if !ok {
		if want, ok = op.responses["default"]; !ok || resp.StatusCode < 400 {
			d.t.Errorf("%s: openapi.json has no such status", name)
			return resp, nil
		}
	}
	ct, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	c, ok := want[ct]
	switch {
	case ok:
		resp.Body = &heldBody{ReadCloser: resp.Body, check: func(b []byte, whole bool) { d.hold(name, ct, c, b, whole) }}
	case len(want) > 0 || ct != "":
		d.t.Errorf("%s: openapi.json has no content of type %q", name, ct)
	}
	return resp, nil
}

// CloseIdleConnections serves http.Client.
func (d *described) CloseIdleConnections() {
	if c, ok := d.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// hold checks a body, as much of it as was read.
func (d *described) hold(name, ct string, c content, b []byte, whole bool) {
	fits := func(s *schema.Schema, v []byte) {
		if s == nil {
			return
		}
		for _, wrong := range s.Validate(v) {
			d.t.Errorf("%s: not as openapi.json has it: %s: %s: %s", name, wrong.Pointer, wrong.Message, v)
		}
	}
	switch {
	case strings.HasSuffix(ct, "json") && whole:
		fits(c.body, b)
	case c.event != nil:
		lines := strings.Split(string(b), "\n")
		for _, line := range lines[:len(lines)-1] {
			if ct == "text/event-stream" {
				var ok bool
				if line, ok = strings.CutPrefix(line, "data: "); !ok {
					continue
				}
			}
			fits(c.event, []byte(line))
		}
	}
}

type heldBody struct {
	io.ReadCloser
	mu    sync.Mutex // a body may be closed while it is read
	got   bytes.Buffer
	check func(b []byte, whole bool)
}

func (b *heldBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.got.Write(p[:n])
	if err != nil && b.check != nil {
		b.check(b.got.Bytes(), err == io.EOF)
		b.check = nil
	}
	return n, err
}

func (b *heldBody) Close() error {
	b.mu.Lock()
	if b.check != nil {
		b.check(b.got.Bytes(), false)
		b.check = nil
	}
	b.mu.Unlock()
	return b.ReadCloser.Close()
}

// The schema of OpenAPI 3.1 says which form each object of the document has.
func TestDocumentIsOpenAPI(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(testdata.Dir(t, "openapi-schema", "schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	form, err := schema.Compile(raw)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range form.Validate(doc) {
		t.Errorf("%s: %s", wrong.Pointer, wrong.Message)
	}
}

// Every operation makes a tool, except the one whose body is lines of JSON: ids are unique, references lead to something, parameters are
// those of the path, and security schemes exist.
func TestDocumentMakesTools(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defs, err := httptool.Import(doc, &httptool.ImportOptions{Server: "https://lathe.example", Operations: []string{"*"}, Exclude: []string{"importRun"},
		Allowlist: []string{"*"}, Security: map[string]secret.Secret{"key": secret.New("canary")}})
	if err != nil {
		t.Fatal(err)
	}
	for _, def := range defs {
		if _, err := httptool.New(def, nil, nil); err != nil {
			t.Error(err)
		}
	}
	if n := len(theDocument(t).ops); len(defs) != n-1 {
		t.Errorf("%d tools of %d operations", len(defs), n)
	}
}

// What is served and what is described are the same.
func TestDocumentHasEveryRoute(t *testing.T) {
	t.Parallel()
	served := map[string]bool{}
	for _, rt := range serve(t, &setting{opts: func(o *server.Options) { o.NoPage, o.MCP = true, http.NotFoundHandler() }}).gateway.Routes() {
		if rt.Name != "" && !rt.Cluster {
			served[strings.ReplaceAll(strings.ReplaceAll(rt.Name, "...}", "}"), "{$}", "")] = true
		}
	}
	described := map[string]bool{}
	for _, op := range theDocument(t).ops {
		path, _, _ := strings.Cut(op.Path, ":") // what stands there is part of the last segment for [http.ServeMux]
		name := op.Method + " " + path
		if !served[name] {
			t.Errorf("openapi.json has %s, which is not served", name)
		}
		described[name] = true
	}
	for name := range described {
		delete(served, name)
	}
	for name := range served {
		t.Errorf("%s is served, and not in openapi.json", name)
	}
}

func TestDocumentIsServed(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	want, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if resp, got := f.do("GET", "/api/openapi.json", ""); got != string(want) || resp.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%d bytes of %s", len(got), resp.Header.Get("Content-Type"))
	}
}

// What the document's own examples say is what its schemas allow and the server takes.
func TestDocumentExamplesFit(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	for _, op := range theDocument(t).ops {
		if op.Example != nil && op.body != nil {
			for _, wrong := range op.body.Validate(op.Example) {
				t.Errorf("%s %s: %s: %s", op.Method, op.Path, wrong.Pointer, wrong.Message)
			}
		}
		if op.Example == nil || strings.Contains(op.Path, "{id}") || op.Method == http.MethodHead {
			continue
		}
		path := strings.ReplaceAll(op.Path, "{name}", "calculator")
		if resp, body := f.do(op.Method, path, string(op.Example)); resp.StatusCode >= 300 {
			t.Errorf("%s: %d %s", path, resp.StatusCode, body)
		}
	}
}
