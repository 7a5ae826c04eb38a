package httptool_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/httptool"
)

// mixed has operations of which tools can be made, and others.
const mixed = `
openapi: 3.2.0
info: {title: t, version: "1"}
paths:
  /good: {get: {operationId: good, tags: [all]}, query: {operationId: asked, tags: [all]}}
  /file: {post: {operationId: upload, tags: [all], requestBody: {content: {multipart/form-data: {schema: {type: object, properties: {f: {type: string, format: binary}}}}}}}}
  /raw: {post: {operationId: raw, tags: [all], requestBody: {content: {application/octet-stream: {}}}}}
  /locked: {get: {operationId: locked, tags: [all], security: [{key: []}]}}
  /{lost}: {get: {operationId: lost, tags: [all]}}
  /broken: {get: {operationId: broken, tags: [all], parameters: [{name: q, in: query, schema: {type: strng}}]}}
  /twice: {get: {operationId: twice, tags: [all]}, put: {operationId: twice, tags: [all]}}
  /same: {get: {operationId: same.name, tags: [all]}, put: {operationId: same/name, tags: [all]}}
  /whole: {get: {operationId: whole, tags: [all], parameters: [{name: q, in: querystring, content: {application/x-www-form-urlencoded: {schema: {type: object}}}}]}}
components: {securitySchemes: {key: {type: apiKey, in: header, name: X-Key}}}
`

// A pattern and a tag leave out the operations of which no tool can be made, and say each with its reason. An operation that is named is
// an error, and so are all if no tool is left.
func TestPatternsLeaveOutWhatCannotBeATool(t *testing.T) {
	t.Parallel()
	reasons := []string{
		`asked: no tool is made of the method "QUERY"`,
		`broken: schema: schema: not a valid JSON Schema`,
		`locked: needs a credential: key`,
		`lost: the path has {lost}, and no parameter fills it`,
		`raw: its body is of type application/octet-stream: JSON, forms and text can be written`,
		`same.name: the name same_name is also that of "same/name": rename one of them`,
		`same/name: the name same_name is also that of "same.name": rename one of them`,
		`twice: two operations of the document have this operationId: give one of them another, or exclude both`,
		`upload: its body has the file "f": only text can be sent in parts`,
		`whole: parameter "q": no place "querystring"`,
	}
	for name, c := range map[string]struct {
		change func(*httptool.ImportOptions)
		tools  string
		out    []string // that are left out; nil: the import is an error
		err    string
	}{
		"a pattern": {func(o *httptool.ImportOptions) { o.Operations = []string{"*"} }, "good", reasons, ""},
		"a tag":     {func(o *httptool.ImportOptions) { o.Tags = []string{"all"} }, "good", reasons, ""},
		"excluded": {func(o *httptool.ImportOptions) {
			o.Operations, o.Exclude = []string{"*"}, []string{"same.name", "t*", "l*"}
		}, "good same_name", slices.Concat(reasons[:2], reasons[4:5], reasons[8:]), ""},
		"renamed": {func(o *httptool.ImportOptions) {
			o.Operations, o.Rename = []string{"s*"}, map[string]string{"same.name": "other"}
		}, "other same_name", []string{}, ""},
		"one of two names":     {func(o *httptool.ImportOptions) { o.Operations = []string{"s*", "same.name"} }, "same_name", reasons[6:7], ""},
		"named":                {func(o *httptool.ImportOptions) { o.Operations = []string{"*", "raw"} }, "", nil, reasons[4]},
		"named twice":          {func(o *httptool.ImportOptions) { o.Operations = []string{"good", "twice"} }, "", nil, reasons[7]},
		"no tool is left":      {func(o *httptool.ImportOptions) { o.Operations = []string{"r*", "u*"} }, "", nil, reasons[4] + "\n" + reasons[8]},
		"a pattern of nothing": {func(o *httptool.ImportOptions) { o.Operations = []string{"*", "x*"} }, "", nil, "no operationId of this pattern"},
		"without OnLeftOut":    {func(o *httptool.ImportOptions) { o.Operations, o.OnLeftOut = []string{"*"}, nil }, "", nil, reasons[4]},
	} {
		var out, names []string
		o := &httptool.ImportOptions{Source: "s", Server: "https://example.com", Allowlist: []string{"*"},
			OnLeftOut: func(e *httptool.OperationError) { out = append(out, e.Error()) }}
		c.change(o)
		defs, err := httptool.Import([]byte(mixed), o)
		for _, d := range defs {
			names = append(names, d.Name)
		}
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) || strings.Join(names, " ") != c.tools {
			t.Errorf("%s: got %v, %v, want %q, %q", name, names, err, c.tools, c.err)
		}
		if !slices.EqualFunc(out, c.out, strings.HasPrefix) {
			t.Errorf("%s: left out %q, want %q", name, out, c.out)
		}
	}
}

// A form of a oneOf whose values all match another form can never be used: the definition has a warning, which names both. Forms that
// can be told apart have none.
func TestFormsThatNoCallSatisfiesAreAWarning(t *testing.T) {
	t.Parallel()
	for schemas, warns := range map[string]bool{
		`A: {required: [kind], properties: {kind: {type: string}, lives: {type: integer}}}
    B: {required: [kind], properties: {kind: {type: string, title: other}, bark: {type: boolean}}}`: true,
		`A: {required: [kind], properties: {kind: {const: a}, lives: {type: integer}}}
    B: {required: [kind], properties: {kind: {const: b}, bark: {type: boolean}}}`: false,
		`A: {required: [kind], properties: {kind: {type: string}}}
    B: {required: [kind, bark], properties: {kind: {type: string}, bark: {type: boolean}}}`: true, // B is an A
		`A: {required: [kind], properties: {kind: {type: string}}, additionalProperties: false}
    B: {required: [kind, bark], properties: {kind: {type: string}, bark: {type: boolean}}}`: false,
		`A: {required: [lives], properties: {lives: {type: integer}}}
    B: {required: [bark], properties: {bark: {type: boolean}}}`: false,
		`A: {allOf: [{$ref: "#/components/schemas/C"}, {properties: {lives: {type: integer}}}]}
    B: {allOf: [{$ref: "#/components/schemas/C"}, {properties: {bark: {type: boolean}}}]}
    C: {required: [id, kind], properties: {kind: {type: string}, id: {type: string, readOnly: true}}}`: true,
		`A: {required: [id, kind], properties: {kind: {type: string}, id: {type: string}}}
    B: {required: [kind], properties: {kind: {type: string}, id: {type: string, readOnly: true}}}`: true, // an A is a B, which has no id in requests
		`A: {type: string}
    B: {required: [kind], properties: {kind: {type: string}}}`: false,
		`A: {properties: {n: {type: integer, minimum: 1}}}
    B: {properties: {n: {type: integer, maximum: 0}}}`: false,
		`A: {properties: {n: {type: integer}}, minProperties: 1}
    B: {properties: {n: {type: integer}}, maxProperties: 0}`: false,
	} {
		doc := `openapi: 3.1.0
info: {title: t, version: "1"}
paths:
  /a: {post: {operationId: a, requestBody: {content: {application/json: {schema: {type: object, properties: {animal: {oneOf: [{$ref: "#/components/schemas/A"}, {$ref: "#/components/schemas/B"}]}}}}}}}}
components:
  schemas:
    ` + schemas
		defs, err := httptool.Import([]byte(doc), &httptool.ImportOptions{Server: "https://example.com", Operations: []string{"a"}, Allowlist: []string{"*"}})
		if err != nil {
			t.Fatal(err)
		}
		if got := defs[0].Warnings(); len(got) > 0 != warns || warns && (!strings.Contains(got[0], `"A"`) || !strings.Contains(got[0], `"B"`)) {
			t.Errorf("%s\ngot %q", schemas, got)
		}
	}
}

// Members that the document says are writeOnly are removed from answers, wherever the schema of the status says so, also if the
// allowlist shows everything.
func TestWriteOnlyMembersAreNotInAnswers(t *testing.T) {
	t.Parallel()
	doc := `
openapi: 3.0.3
info: {title: t, version: "1"}
paths:
  /users:
    get:
      operationId: users
      responses:
        "200": {content: {application/json: {schema: {$ref: "#/components/schemas/User"}}}}
        "4XX": {$ref: "#/components/responses/Wrong"}
        default: {content: {application/json: {schema: {properties: {open: {writeOnly: true}}}}}}
  /lists:
    get:
      operationId: lists
      responses:
        default: {content: {application/hal+json: {schema: {type: array, items: {oneOf: [{$ref: "#/components/schemas/User"}, {type: string}]}}}}}
  /plain: {get: {operationId: plain, responses: {"200": {content: {application/json: {schema: {properties: {open: {type: string}}}}}}}}}
components:
  responses: {Wrong: {content: {application/json: {schema: {properties: {hint: {writeOnly: true}}}}}}}
  schemas:
    User:
      type: object
      properties:
        name: {type: string}
        password: {type: string, writeOnly: true}
        pin: {$ref: "#/components/schemas/Pin"}
        friends: {type: array, items: {$ref: "#/components/schemas/User"}}
        extra: {allOf: [{properties: {key: {allOf: [{type: string}], writeOnly: true}}}]}
        by_name: {type: object, additionalProperties: {$ref: "#/components/schemas/User"}}
    Pin: {type: string, writeOnly: true}
`
	answers := map[string]struct {
		status     int
		body, want string
	}{
		"users": {200, `{"name":"a","password":"p","pin":"1","open":1,"friends":[{"name":"b","pin":"2","friends":[{"password":null,"name":"c"}]}],"extra":{"key":"k","n":1.0},"by_name":{"password":{"password":"x","name":"d"}}}`,
			`{"name":"a","open":1,"friends":[{"name":"b","friends":[{"name":"c"}]}],"extra":{"n":1.0},"by_name":{"password":{"name":"d"}}}`},
		"lists": {200, `[ {"name":"a" , "password":"p"}, "password", 1 ]`, `[{"name":"a"},"password",1]`},
		"plain": {200, `{"open":"o","password":"p"}`, `{"open":"o","password":"p"}`},
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		if r.URL.Path == "/fail/users" {
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, `{"hint":"h","password":"kept","message":"m"}`)
			return
		}
		a := answers[strings.TrimPrefix(r.URL.Path, "/")]
		w.WriteHeader(a.status)
		_, _ = io.WriteString(w, a.body)
	}))
	t.Cleanup(srv.Close)
	from := func(path string) *tool.Set {
		defs, err := httptool.Import([]byte(doc), &httptool.ImportOptions{Source: "s", Server: srv.URL + path, Operations: []string{"*"}, Allowlist: []string{"*"}})
		if err != nil {
			t.Fatal(err)
		}
		set, err := tool.NewSet()
		for _, d := range defs {
			one, bad := httptool.New(d, loopback(t, srv.URL), nil)
			if err == nil {
				err = bad
			}
			if err == nil {
				err = set.Add(one)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	set := from("")
	for name, a := range answers {
		if got := call(t, set, name, "{}"); got.IsError || !strings.Contains(fmt.Sprint(got.Content), a.want) {
			t.Errorf("%s: got %s, want %s", name, got.Content, a.want)
		}
	}
	if got := call(t, from("/fail"), "users", "{}"); !got.IsError || !strings.Contains(fmt.Sprint(got.Content), `"http_status":409,"password":"kept","message":"m"`) {
		t.Errorf("an error: got %s", got.Content)
	}
}

// importWriteOnly imports the operations of a document, of which paths and components are given.
func importWriteOnly(t *testing.T, parts string, o *httptool.ImportOptions) ([]*httptool.Definition, error) {
	t.Helper()
	o.Source, o.Allowlist = "s", []string{"*"}
	if o.Server == "" {
		o.Server = "https://example.com"
	}
	return httptool.Import([]byte(`{"openapi":"3.1.0","info":{"title":"t","version":"1"},`+parts+`}`), o)
}

// Members that are writeOnly under a condition are removed, too, and so are those of JSON that has another content type, also where it
// repeats a member. Other texts stay.
func TestWriteOnlyMembersAreNotInAnswersOfOtherTypes(t *testing.T) {
	t.Parallel()
	const hidden = `{"properties":{"%s":{"writeOnly":true}}}`
	schema := fmt.Sprintf(`{"properties":{"me":{"$ref":"#/components/schemas/S"}},"dependentSchemas":{"a":`+hidden+`},"if":`+hidden+`,"then":`+hidden+`,"else":`+hidden+`}`, "d", "i", "t", "e")
	body, typ := "", ""
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", typ)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(srv.Close)
	defs, err := importWriteOnly(t, `"paths":{"/a":{"get":{"operationId":"a","responses":{"200":{"content":{"*/*":{"schema":{"$ref":"#/components/schemas/S"}}}}}}}},"components":{"schemas":{"S":`+schema+`}}`,
		&httptool.ImportOptions{Server: srv.URL, Operations: []string{"a"}})
	if err != nil {
		t.Fatal(err)
	}
	one, err := httptool.New(defs[0], loopback(t, srv.URL), nil)
	if err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet(one)
	if err != nil {
		t.Fatal(err)
	}
	deep := strings.Repeat(`{"me":`, 100) + `{"d":"SECRET"}` + strings.Repeat(`}`, 100)
	for _, tt := range []struct{ typ, body, want string }{
		{"application/json", `{"a":1,"d":"SECRET","i":"SECRET","t":"SECRET","e":"SECRET"}`, `{"a":1}`},
		{"text/plain", `{"a":1,"me":{"d":"SECRET","b":2}}`, `{"a":1,"me":{"b":2}}`},
		{"text/json", ` {"d":"SECRET","a":1,"d":"SECRET"} `, `{"a":1}`},
		{"", `{"d":"SECRET"}`, `{}`},
		{"text/plain", deep, `null`},
		{"text/plain", `{"d":1} and more`, `{"d":1} and more`},
	} {
		typ, body = tt.typ, tt.body
		if got := fmt.Sprint(call(t, set, "a", "{}").Content); strings.Contains(got, "SECRET") || !strings.Contains(got, tt.want) {
			t.Errorf("%s %.60s: got %s, want %s", tt.typ, tt.body, got, tt.want)
		}
	}
}

// An operation is refused if more schemas apply to one value of its answers than are looked at, and left out if a pattern selects it.
func TestWriteOnlyMembersOfTooManySchemasRefuseTheOperation(t *testing.T) {
	t.Parallel()
	var forms strings.Builder
	for i := range 300 {
		fmt.Fprintf(&forms, `{"properties":{"p%d":{"writeOnly":true}}},`, i)
	}
	answer := func(schema string) string {
		return `{"200":{"content":{"application/json":{"schema":` + schema + `}}}}`
	}
	doc := `"paths":{"/a":{"get":{"operationId":"wide","responses":` + answer(`{"items":{"$ref":"#/components/schemas/W"}}`) + `}},"/b":{"get":{"operationId":"wide_too","responses":` +
		answer(`{"properties":{"w":{"$ref":"#/components/schemas/W"}}}`) + `}},"/c":{"get":{"operationId":"fine","responses":` + answer(`{"properties":{"w":{"writeOnly":true}}}`) + `}}},"components":{"schemas":{"W":{"anyOf":[` + forms.String() + `{}]}}}`
	const want = "more than 256 schemas"
	if _, err := importWriteOnly(t, doc, &httptool.ImportOptions{Operations: []string{"wide_too"}}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("named: got %v", err)
	}
	var out []string
	defs, err := importWriteOnly(t, doc, &httptool.ImportOptions{Operations: []string{"*"}, OnLeftOut: func(e *httptool.OperationError) {
		if out = append(out, e.Operation); !strings.Contains(e.Error(), want) {
			t.Errorf("got %v", e)
		}
	}})
	if err != nil || len(defs) != 1 || fmt.Sprint(out) != "[wide wide_too]" {
		t.Errorf("got %d tools, %v left out, %v", len(defs), out, err)
	}
}

// Operations share what they have in common of their answers: with each further one that has the same response, the memory grows by that
// of the operation, and not by that of the response. What a document says in too many ways is refused.
func TestWriteOnlyMembersOfSharedResponsesAreReadOnce(t *testing.T) {
	testdata.CountsAllocations(t)
	var members strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&members, `"p%d":{"type":"string"},`, i)
	}
	doc := func(operations int) string {
		var paths strings.Builder
		for i := range operations {
			fmt.Fprintf(&paths, `"/p%d":{"get":{"operationId":"o%[1]d","responses":{"200":{"$ref":"#/components/responses/Big"}}}},`, i)
		}
		return `"paths":{` + paths.String() + `"/q":{"get":{"operationId":"q"}}},"components":{"responses":{"Big":{"content":{"application/json":{"schema":{"properties":{` + members.String() + `"key":{"writeOnly":true}}}}}}}}`
	}
	allocations := func(operations int) float64 {
		text := doc(operations)
		return testing.AllocsPerRun(1, func() {
			if _, err := importWriteOnly(t, text, &httptool.ImportOptions{Operations: []string{"*"}}); err != nil {
				t.Error(err)
			}
		})
	}
	if one, many := allocations(1), allocations(50); many-one > 49*1000 {
		t.Errorf("%.0f allocations for one operation, %.0f for 50", one, many)
	}

	var wide, ways strings.Builder // 1000 members have the 20,000 forms of one schema, each with a member of its own
	for i := range 20_000 {
		fmt.Fprintf(&wide, `{"$ref":"#/components/schemas/S","minLength":%d},`, i)
	}
	for i := range 1000 {
		fmt.Fprintf(&ways, `"w%d":{"$ref":"#/components/schemas/W","properties":{"k%[1]d":{"writeOnly":true}}},`, i)
	}
	many := `"paths":{"/a":{"get":{"operationId":"a","responses":{"200":{"content":{"application/json":{"schema":{"properties":{` + ways.String() + `"z":{}}}}}}}}}},"components":{"schemas":{"W":{"anyOf":[` + wide.String() +
		`{}]},"S":{"properties":{"key":{"writeOnly":true}}}}}`
	if _, err := importWriteOnly(t, many, &httptool.ImportOptions{Operations: []string{"*"}, OnLeftOut: func(*httptool.OperationError) {}}); err == nil || !strings.Contains(err.Error(), "take more than") {
		t.Errorf("a document with too many ways: got %v", err)
	}
}

// Schemas that refer to each next one twice stand for 2^100 paths: none of what looks for readOnly and writeOnly members and compares
// forms follows each path.
func TestT15_SharedSchemasAreReadOnce(t *testing.T) {
	t.Parallel()
	var schemas strings.Builder
	for i := range 100 {
		fmt.Fprintf(&schemas, `    S%d: {allOf: [{$ref: "#/components/schemas/S%[2]d"}, {$ref: "#/components/schemas/S%[2]d"}], oneOf: [{$ref: "#/components/schemas/S%[2]d"}, {$ref: "#/components/schemas/S%[2]d"}]}`+"\n", i, i+1)
	}
	doc := `openapi: 3.1.0
info: {title: t, version: "1"}
paths:
  /a:
    post:
      operationId: a
      requestBody: {content: {application/json: {schema: {$ref: "#/components/schemas/S0"}}}}
      responses: {"200": {content: {application/json: {schema: {$ref: "#/components/schemas/S0"}}}}}
components:
  schemas:
` + schemas.String() + `    S100: {required: [id, key], properties: {id: {readOnly: true}, key: {writeOnly: true}}}
`
	defs, err := httptool.Import([]byte(doc), &httptool.ImportOptions{Server: "https://example.com", Operations: []string{"a"}, Allowlist: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(defs[0].Defs["S100"]); got != `{"properties":{"key":{"writeOnly":true}},"required":["key"]}` {
		t.Errorf("got %s", got)
	}
}

// A document whose tools take too much is refused, also where a pattern selects them: which are left out would depend on their order.
// Names of members that are looked at count, too.
func TestT16_PatternsDoNotLeaveOutWhatIsTooLarge(t *testing.T) {
	t.Parallel()
	var members, schemas, uses strings.Builder
	for i := range 6_000 {
		fmt.Fprintf(&members, `"p%d":{"readOnly":true},`, i)
	}
	for i := range 1_000 {
		fmt.Fprintf(&schemas, `"S%d":{"allOf":[{"$ref":"#/components/schemas/Base"}],"minProperties":%[1]d},`, i)
		fmt.Fprintf(&uses, `"q%d":{"$ref":"#/components/schemas/S%[1]d"},`, i)
	}
	doc := `{"openapi":"3.1.0","info":{"title":"t","version":"1"},"paths":{"/a":{"get":{"operationId":"small"}},"/b":{"post":{"operationId":"wide","requestBody":{"content":{"application/json":{
		"schema":{"properties":{` + uses.String() + `"z":{}}}}}}}}},"components":{"schemas":{` + schemas.String() + `"Base":{"properties":{` + members.String() + `"z":{}}}}}}`
	defs, err := httptool.Import([]byte(doc), &httptool.ImportOptions{Server: "https://example.com", Operations: []string{"*"}, Allowlist: []string{"*"},
		OnLeftOut: func(e *httptool.OperationError) { t.Errorf("left out: %v", e) }})
	if err == nil || !strings.Contains(err.Error(), "wide: its body: the tools of the document take more than") && !strings.Contains(err.Error(), "wide: the tools of the document take more than") {
		t.Errorf("got %d tools and %v", len(defs), err)
	}
}
