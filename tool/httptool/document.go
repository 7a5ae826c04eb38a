package httptool

// This file reads an OpenAPI document: its version, its operations and the parts to which they refer.

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe/internal/text"
)

// A pathOperation is an operation with its method and path.
type pathOperation struct {
	method, path string
	inherited    []any // parameters of the path
	op           *operation
}

// An operation contains the members of an operation that this package uses.
type operation struct {
	OperationID, Summary, Description string

	Tags       []string       // at most maxTags
	Parameters []any          // parameters or references to them
	Body       any            // the request body or a reference to it; nil: none
	Responses  map[string]any // by status; may be nil
	Security   []requirement  // at most maxRequirements
	secured    bool           // it has its own Security, which may be empty
}

// A requirement contains the scopes of security schemes that are required together, by name of the scheme.
type requirement map[string][]string

// Limits of the parts of a document. Operations that are reached by references share lists, so a small document can contain long lists many
// times.
const (
	maxReferences   = 100 // length of a chain of references
	maxTags         = 100 // of one operation
	maxRequirements = 100 // security schemes named in one list
)

// methods are the members of a path that are operations, in the order in which they are read.
var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, http.MethodTrace, http.MethodConnect}

// read decodes and checks the document.
func (d *Document) read(b []byte) error {
	if len(b) > MaxDocumentBytes {
		return fmt.Errorf("the document is larger than %d bytes", MaxDocumentBytes)
	}
	v, err := decodeDocument(b)
	if err != nil {
		return fmt.Errorf("not an OpenAPI document: %w", err)
	}
	var ok bool
	if d.root, ok = v.(map[string]any); !ok {
		return errors.New("not an OpenAPI document: it is not an object")
	}
	if err := d.readVersion(); err != nil {
		return err
	}
	if err := d.scan(d.root, keywords); err != nil {
		return fmt.Errorf("not an OpenAPI document: %w", err)
	}
	var r fields
	paths := r.object(d.root, "paths")
	none := true
	for path, entry := range text.ByName(paths) {
		if strings.HasPrefix(path, "x-") {
			continue
		}
		none = false
		if r.err == nil {
			r.err = d.readPath(path, entry)
		}
	}
	if r.err == nil && none {
		return errors.New("the document has no paths")
	}
	if r.err != nil {
		return fmt.Errorf("not an OpenAPI document: %w", r.err)
	}
	d.nameOperations()
	return nil
}

// readVersion returns an error for versions other than 3.0 to 3.2.
func (d *Document) readVersion() error {
	version, isText := d.root["openapi"].(string)
	old, isOld := d.root["swagger"]
	switch {
	case isOld && d.root["openapi"] == nil:
		return fmt.Errorf("the document is Swagger %.20q, and OpenAPI 3.0 to 3.2 are read: convert it with `npx swagger2openapi FILE --outfile openapi.json`", fmt.Sprint(old))
	case d.root["openapi"] == nil:
		return errors.New(`not an OpenAPI document: it has no member "openapi" with a version: name the file of the document itself`)
	case !isText:
		return errors.New(`not an OpenAPI document: "openapi" must be a text, such as "3.1.0": put the version into quotes`)
	}
	for _, known := range []string{"3.0.", "3.1.", "3.2."} {
		if strings.HasPrefix(version, known) {
			d.v30, d.v32 = known == "3.0.", known == "3.2."
			return nil
		}
	}
	return fmt.Errorf("the document is of OpenAPI %.20q, and 3.0 to 3.2 are read: ask the publisher of the API for one of these versions, or convert it", version)
}

// nameOperations sets the operationId of operations without one to a name of method and path. If another operation has the same id, 8
// hexadecimal digits of the SHA-256 of method and path are appended.
func (d *Document) nameOperations() {
	count, unnamed := map[string]int{}, []pathOperation{}
	for _, f := range d.found {
		if f.op.OperationID == "" {
			f.op.OperationID = pathName(f.method, f.path)
			unnamed = append(unnamed, f)
		}
		count[f.op.OperationID]++
	}
	for _, f := range unnamed {
		if count[f.op.OperationID] > 1 {
			f.op.OperationID += "_" + text.Digest(f.method+" "+f.path)
		}
	}
}

// readPath reads the operations of one path.
func (d *Document) readPath(path string, v any) error {
	if v == nil {
		return nil
	}
	item, err := d.resolve(v)
	if err != nil {
		return fmt.Errorf("the path %.100q: %w", path, err)
	}
	if local, ok := v.(map[string]any); ok && local["$ref"] != nil { // members beside the reference take precedence
		item = maps.Clone(item)
		maps.Copy(item, local)
	}
	var r fields
	inherited := r.list(item, "parameters")
	add := func(method string, in map[string]any, member string) {
		if in[member] == nil {
			return
		}
		op := r.object(in, member)
		o := &operation{OperationID: r.text(op, "operationId"), Summary: r.text(op, "summary"), Description: r.text(op, "description"),
			Tags: r.tags(op), Parameters: r.list(op, "parameters"), Body: op["requestBody"], Responses: asObject(op["responses"])}
		o.Security, o.secured = r.requirements(op, "security"), op["security"] != nil
		d.found = append(d.found, pathOperation{method, path, inherited, o})
	}
	for _, method := range methods {
		add(method, item, strings.ToLower(method))
	}
	if d.v32 { // no tool is made of these, but they are listed and reported
		add("QUERY", item, "query")
		others := r.object(item, "additionalOperations")
		for method := range text.ByName(others) {
			add(method, others, method)
		}
	}
	if r.err != nil {
		return fmt.Errorf("the path %.100q: %w", path, r.err)
	}
	return nil
}

// withoutReferences are the members whose values are data and contain no references.
var withoutReferences = words("example", "examples", "default", "enum", "const", "mapping")

// withOwnNames are the members that contain members with names chosen by the author of the document.
var withOwnNames = words("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "schemas", "responses", "parameters",
	"requestBodies", "headers", "securitySchemes", "links", "callbacks", "pathItems", "paths", "content", "encoding", "webhooks",
	"mediaTypes", "additionalOperations")

// A naming says who chooses the names of an object's members.
type naming int

const (
	keywords naming = iota // OpenAPI or JSON Schema defines them
	ownNames               // the author of the document: a property may have the name $ref or example
)

// scan sets readOnly and writeOnly. It returns an error if v contains a reference to another document, or to a place that does not exist; of
// several errors, the first by text. names are those of the members if v is an object.
func (d *Document) scan(v any, names naming) error {
	var first error
	note := func(err error) {
		if err != nil && (first == nil || err.Error() < first.Error()) {
			first = err
		}
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			note(d.scan(e, keywords))
		}
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok && names == keywords {
			_, err := d.follow(ref)
			note(err)
		}
		d.readOnly = d.readOnly || v["readOnly"] == true
		d.writeOnly = d.writeOnly || v["writeOnly"] == true
		for name, e := range v {
			switch {
			case names == keywords && withOwnNames[name]:
				note(d.scan(e, ownNames))
			case names == ownNames || !withoutReferences[name] && !strings.HasPrefix(name, "x-"):
				note(d.scan(e, keywords))
			}
		}
	}
	return first
}

// follow returns the target of a reference.
func (d *Document) follow(ref string) (any, error) {
	if ref == "#" {
		return d.root, nil
	}
	pointer, local := strings.CutPrefix(ref, "#/")
	if !local {
		return nil, fmt.Errorf("the reference %.200q is to another document, which is not allowed", ref)
	}
	return valueAt(d.root, plainPointer(pointer))
}

// resolve returns the object v, or the object to which the reference v leads.
func (d *Document) resolve(v any) (map[string]any, error) {
	for range maxReferences {
		in, ok := v.(map[string]any)
		if !ok {
			return nil, errors.New("is not an object")
		}
		ref, ok := in["$ref"].(string)
		if !ok {
			return in, nil
		}
		var err error
		if v, err = d.follow(ref); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("more than %d references lead from one to the next", maxReferences)
}

// scheme returns a security scheme, or nil if the document does not define it.
func (d *Document) scheme(name string) *securityScheme {
	var r fields
	v := r.object(r.object(d.root, "components"), "securitySchemes")[name]
	if v == nil {
		return nil
	}
	in, err := d.resolve(v)
	if err != nil {
		return nil
	}
	s := &securityScheme{Type: r.text(in, "type"), In: r.text(in, "in"), Name: r.text(in, "name"), Scheme: r.text(in, "scheme"), discovery: r.text(in, "openIdConnectUrl")}
	flows := r.object(in, "flows")
	for _, flow := range []string{"authorizationCode", "clientCredentials"} {
		if at := r.text(r.object(flows, flow), "tokenUrl"); s.tokens == "" {
			s.tokens = at
		}
	}
	if r.err != nil {
		return nil
	}
	return s
}

// A securityScheme describes how a credential is sent.
type securityScheme struct {
	Type, In, Name, Scheme string

	discovery string // URL of the description of the token issuer
	tokens    string // URL of the token endpoint
}

// serverAdvice returns a text with the first server in the document, for the author of the configuration.
func (d *Document) serverAdvice() string {
	var r fields
	servers := r.list(d.root, "servers")
	if len(servers) == 0 {
		return ""
	}
	server := asObject(servers[0])
	u := r.text(server, "url")
	for name, v := range r.object(server, "variables") {
		u = strings.ReplaceAll(u, "{"+name+"}", r.text(asObject(v), "default"))
	}
	return fmt.Sprintf(" (it says %.200q)", u)
}

// fields reads members of objects. A missing or null member has the zero value. err is the error of the first member with another type.
type fields struct{ err error }

func (r *fields) fail(name, want string) {
	if r.err == nil {
		r.err = fmt.Errorf("%q is not %s", name, want)
	}
}

// memberOf returns a member of type T. want is the name of the type in errors.
func memberOf[T any](r *fields, in map[string]any, name, want string) T {
	v, ok := in[name].(T)
	if !ok && in[name] != nil {
		r.fail(name, want)
	}
	return v
}

func (r *fields) text(in map[string]any, name string) string {
	return memberOf[string](r, in, name, "a text")
}

func (r *fields) boolean(in map[string]any, name string) bool {
	return memberOf[bool](r, in, name, "true or false")
}

func (r *fields) object(in map[string]any, name string) map[string]any {
	return memberOf[map[string]any](r, in, name, "an object")
}

func (r *fields) list(in map[string]any, name string) []any {
	return memberOf[[]any](r, in, name, "a list")
}

// choice returns the value of a boolean member, or nil if it is missing.
func (r *fields) choice(in map[string]any, name string) *bool {
	if in[name] == nil {
		return nil
	}
	return new(r.boolean(in, name))
}

func (r *fields) texts(in map[string]any, name string) []string {
	var out []string
	for _, v := range r.list(in, name) {
		s, ok := v.(string)
		if !ok {
			r.fail(name, "a list of texts")
		}
		out = append(out, s)
	}
	return out
}

func (r *fields) tags(in map[string]any) []string {
	if len(r.list(in, "tags")) > maxTags {
		r.fail("tags", fmt.Sprintf("a list of at most %d", maxTags))
		return nil
	}
	return r.texts(in, "tags")
}

func (r *fields) requirements(in map[string]any, name string) []requirement {
	var out []requirement
	left := maxRequirements
	for _, v := range r.list(in, name) {
		m, ok := v.(map[string]any)
		if !ok {
			r.fail(name, "a list of objects")
		}
		if left -= max(1, len(m)); left < 0 {
			r.fail(name, fmt.Sprintf("a list that names at most %d security schemes", maxRequirements))
			return nil
		}
		one := requirement{}
		for scheme := range m {
			one[scheme] = r.texts(m, scheme)
		}
		out = append(out, one)
	}
	return out
}

// pointerEscapes replaces the escapes in a reference token of a JSON pointer.
var pointerEscapes = strings.NewReplacer("~1", "/", "~0", "~")

// plainPointer returns a JSON pointer in a URL fragment without URL escapes, so that all its spellings are equal.
func plainPointer(pointer string) string {
	if !strings.Contains(pointer, "%") {
		return pointer
	}
	tokens := strings.Split(pointer, "/")
	for i, token := range tokens {
		if plain, err := url.PathUnescape(token); err == nil {
			tokens[i] = strings.ReplaceAll(plain, "/", "~1")
		}
	}
	return strings.Join(tokens, "/")
}

// valueAt returns the value at a JSON pointer without its first slash.
func valueAt(v any, pointer string) (any, error) {
	for token := range strings.SplitSeq(pointer, "/") {
		token = pointerEscapes.Replace(token)
		in := v
		v = asObject(in)[token]
		if list, ok := in.([]any); ok {
			if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(list) && strconv.Itoa(i) == token {
				v = list[i]
			}
		}
		if v == nil {
			return nil, fmt.Errorf("the document has nothing at the reference #/%.100s", pointer)
		}
	}
	return v, nil
}

// asObject returns v if it is an object, and nil otherwise.
func asObject(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// asList returns v if it is a list, and nil otherwise.
func asList(v any) []any {
	list, _ := v.([]any)
	return list
}
