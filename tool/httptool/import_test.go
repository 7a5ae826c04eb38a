package httptool_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/lathe-run/lathe/egress"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/httptool"
)

// The files of a case: doc, operations (one a line; tag:NAME for tags), and what is wanted: schemas
// (name and schema of each tool), or error.
func TestImport(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/import/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			opts := &httptool.ImportOptions{Source: "case", Server: "https://api.example.com", Allowlist: []string{"*"}}
			var doc []byte
			for _, f := range ar.Files {
				switch f.Name {
				case "doc":
					doc = f.Data
					if strings.Contains(string(doc), "known:") {
						opts.Security = map[string]secret.Secret{"known": key("known")}
					}
				case "operations":
					for _, line := range strings.Fields(string(f.Data)) {
						if tag, ok := strings.CutPrefix(line, "tag:"); ok {
							opts.Tags = append(opts.Tags, tag)
						} else {
							opts.Operations = append(opts.Operations, line)
						}
					}
				}
			}
			name, got := imported(t, doc, opts)
			for i, f := range ar.Files {
				if f.Name != "schemas" && f.Name != "error" {
					continue
				}
				if *update {
					ar.Files[i] = txtar.File{Name: name, Data: []byte(got)}
					if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
						t.Fatal(err)
					}
				} else if diff := cmp.Diff(string(f.Data), got); f.Name != name || diff != "" {
					t.Errorf("want %s, got %s (-want +got):\n%s", f.Name, name, diff)
				}
				return
			}
			t.Fatal("the case wants nothing")
		})
	}
}

func imported(t *testing.T, doc []byte, opts *httptool.ImportOptions) (name, got string) {
	t.Helper()
	defs, err := httptool.Import(doc, opts)
	if err != nil {
		return "error", err.Error() + "\n"
	}
	client, err := egress.New(&egress.Rules{Hosts: []string{"api.example.com"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, d := range defs {
		one, err := httptool.New(d, client, nil)
		if err == nil {
			_, err = tool.NewSet(one) // compiles its schema
		}
		if err != nil {
			return "error", err.Error() + "\n"
		}
		sp := one.Spec()
		b.WriteString(sp.Name + " " + sp.Description + "\n" + string(sp.Schema) + "\n")
	}
	return "schemas", b.String()
}

// Two documents whose operations have one name are refused, and both are named.
func TestT6_NamesThatClashAreRefused(t *testing.T) {
	t.Parallel()
	client, err := egress.New(&egress.Rules{Hosts: []string{"*"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := httptool.New(&httptool.Definition{Name: "get", URL: "https://a.example", Allowlist: []string{"*"}, Origin: "openapi:a#get"}, client, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := httptool.New(&httptool.Definition{Name: "get", URL: "https://b.example", Allowlist: []string{"*"}, Origin: "http:get"}, client, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tool.NewSet(a, b); err == nil || !strings.Contains(err.Error(), "openapi:a#get") || !strings.Contains(err.Error(), "http:get") {
		t.Errorf("got %v", err)
	}
}

// A document is a stranger's: nothing of it becomes a tool that is not named.
func TestT3_NothingIsAToolThatIsNotNamed(t *testing.T) {
	t.Parallel()
	if defs, err := httptool.Import(warehouse(t), &httptool.ImportOptions{Server: "https://example.com", Allowlist: []string{"*"}}); err == nil || len(defs) != 0 {
		t.Errorf("got %d tools and %v", len(defs), err)
	}
	if _, err := httptool.Import(warehouse(t), &httptool.ImportOptions{Operations: []string{"authNone"}}); err == nil || !strings.Contains(err.Error(), "https://eu.warehouse.example/v1") {
		t.Errorf("without a server: got %v", err)
	}
}

// Descriptions are a stranger's text that the model reads: what people do not see is taken out.
func TestT4_DescriptionsAreCleaned(t *testing.T) {
	t.Parallel()
	doc := `{"openapi":"3.1.0","info":{"title":"t","version":"1"},"paths":{"/a":{"get":{"operationId":"a","summary":"S` + "\u202e\u200b\U000E0041" + `ee\u001b[31m",
		"description":"` + strings.Repeat("long ", 40_000) + `","parameters":[{"name":"p","in":"query","description":"x` + "\u2066" + `y","schema":{"type":"string","description":"z` + "\ufeff" + `z"}}]}}}}`
	defs, err := httptool.Import([]byte(doc), &httptool.ImportOptions{Server: "https://example.com", Operations: []string{"a"}, Allowlist: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	d := defs[0]
	if !strings.HasPrefix(d.Description, "See[31m\nlong") || len(d.Description) > 4200 {
		t.Errorf("got %d bytes %.40q", len(d.Description), d.Description)
	}
	if p := d.Parameters[0]; p.Description != "xy" || string(p.Schema) != `{"description":"zz","type":"string"}` {
		t.Errorf("got %q %s", p.Description, p.Schema)
	}
}

func FuzzImport(f *testing.F) {
	f.Add([]byte(`{"openapi":"3.0.3","info":{"title":"t","version":"1"},"paths":{"/a/{b}":{"get":{"operationId":"a","parameters":[{"name":"b","in":"path","required":true,"schema":{"type":"string","nullable":true}}]}}}}`))
	f.Add([]byte("openapi: 3.1.0\npaths: {/a: {$ref: '#/paths/~1a'}}"))
	if b, err := os.ReadFile("testdata/warehouse.yaml"); err == nil {
		f.Add(b)
	}
	client, err := egress.New(&egress.Rules{Hosts: []string{"*"}}, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		defs, err := httptool.Import(doc, &httptool.ImportOptions{Server: "https://example.com", Operations: []string{"a"}, Tags: []string{"items"}, Allowlist: []string{"*"}})
		if err != nil {
			return
		}
		for _, d := range defs {
			if one, err := httptool.New(d, client, nil); err == nil {
				_, _ = tool.NewSet(one) // may be refused, must not panic
			}
		}
	})
}

// A path of the document is a path: it cannot lengthen the host, name a port or a user, or go up.
func TestT8_PathsOfADocumentStayOnTheServer(t *testing.T) {
	t.Parallel()
	for _, path := range []string{".evil.example/x", ":8443/x", "@evil.example/x", "x", "", "\\\\evil.example/x"} {
		doc := `{"openapi":"3.1.0","info":{"title":"t","version":"1"},"paths":{"` + path + `":{"get":{"operationId":"a"}}}}`
		defs, err := httptool.Import([]byte(doc), &httptool.ImportOptions{Server: "https://api.example.com", Operations: []string{"a"}, Allowlist: []string{"*"}})
		if err == nil {
			t.Errorf("%q: got a tool for %s", path, defs[0].URL)
		}
	}
	client, err := egress.New(&egress.Rules{Hosts: []string{"*"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/a/../b", "/a/%2e%2E/b", "/a/..%2fb", "/a/..%5Cb", "/..;x/b"} {
		if _, err := httptool.New(&httptool.Definition{Name: "a", URL: "https://api.example.com/v1" + path, Allowlist: []string{"*"}}, client, nil); err == nil {
			t.Errorf("%q is taken", path)
		}
	}
}

// The OpenAPI parser takes more than linear time for deeply nested documents: Import refuses them before it calls the parser.
func TestT15_T16_DeepDocumentsAreRefused(t *testing.T) {
	t.Parallel()
	const n = 5_000
	head := `{"openapi":"3.1.0","info":{"title":"t","version":"1"},"paths":{"/a":{"get":{"operationId":"a","parameters":[{"name":"q","in":"query","schema":`
	deep := head + strings.Repeat(`{"items":`, n) + `{}` + strings.Repeat(`}`, n) + `}]}}}}`
	aliases := "openapi: 3.1.0\ninfo: {title: t, version: '1'}\nx0: &x0 [a]\n"
	for i := range 300 {
		aliases += fmt.Sprintf("x%d: &x%d [*x%d]\n", i+1, i+1, i)
	}
	for name, doc := range map[string]string{
		"JSON": deep, "YAML": "# flow\n" + deep, "aliases": aliases + "paths: {/a: {get: {operationId: a}}}\n",
		"an alias of itself": "openapi: 3.1.0\nx: &x [*x]\npaths: {/a: {get: {operationId: a}}}\n",
	} {
		began := time.Now()
		_, err := httptool.Import([]byte(doc), &httptool.ImportOptions{Server: "https://example.com", Operations: []string{"a"}, Allowlist: []string{"*"}})
		if err == nil || !strings.Contains(err.Error(), "deep") && !strings.Contains(err.Error(), "itself") && !strings.Contains(err.Error(), "alias") {
			t.Errorf("%s: got %v", name, err)
		}
		if d := time.Since(began); d > time.Minute {
			t.Errorf("%s: refused after %v", name, d)
		}
	}
}

// A key that stands twice is another operation for another reader.
func TestT11_DocumentsWithAKeyTwiceAreRefused(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{
		`{"openapi":"3.1.0","info":{"title":"t","version":"1"},"paths":{"/a":{"get":{"operationId":"a"}},"/a":{"get":{"operationId":"a","summary":"other"}}}}`,
		"openapi: 3.1.0\ninfo: {title: t, version: '1'}\npaths:\n  /a: {get: {operationId: a}}\n  /a: {get: {operationId: a, summary: other}}\n",
	} {
		if _, err := httptool.Import([]byte(doc), &httptool.ImportOptions{Server: "https://example.com", Operations: []string{"a"}, Allowlist: []string{"*"}}); err == nil {
			t.Errorf("taken: %s", doc)
		}
	}
}

// Names and values of a schema have to be repeated by the model, so nothing can be taken out of them.
func TestT4_SchemasWithHiddenCharactersAreRefused(t *testing.T) {
	t.Parallel()
	for name, param := range map[string]string{
		"enum":     `{"name":"q","in":"query","schema":{"type":"string","enum":["a` + "\U000E0041\U000E0042" + `"]}}`,
		"default":  `{"name":"q","in":"query","schema":{"type":"string","default":"a` + "\u202e" + `b"}}`,
		"name":     `{"name":"q` + "\u200b" + `","in":"query","schema":{"type":"string"}}`,
		"property": `{"name":"q","in":"query","schema":{"type":"object","properties":{"a` + "\u2066" + `":{}}}}`,
		"joiner":   `{"name":"q` + "\u034f" + `","in":"query","schema":{"type":"string"}}`,
		"shared":   `{"name":"q","in":"query","schema":{"$ref":"#/components/schemas/S"}}`,
	} {
		doc := `{"openapi":"3.1.0","info":{"title":"t","version":"1"},"components":{"schemas":{"S":{"const":"` + "\u3164" + `"}}},"paths":{"/a":{"get":{"operationId":"a","parameters":[` + param + `]}}}}`
		_, err := httptool.Import([]byte(doc), &httptool.ImportOptions{Server: "https://example.com", Operations: []string{"a"}, Allowlist: []string{"*"}})
		if err == nil || !strings.Contains(err.Error(), "invisible characters") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// Patterns choose operations, patterns exclude some of these, and an operation has the name that it is given.
func TestOperationsAreChosenExcludedAndRenamed(t *testing.T) {
	t.Parallel()
	doc := []byte(`{"openapi":"3.1.0","info":{"title":"t","version":"1"},"paths":{
		"/notes":{"get":{"operationId":"notes.list","tags":["notes"]},"post":{"operationId":"notes.create","tags":["notes"]}},
		"/notes/purge":{"post":{"operationId":"notes.purge","tags":["notes"]}},
		"/tags":{"get":{"operationId":"tags.list"}},"/anonymous":{"get":{"tags":["other"]}}}}`)
	for name, one := range map[string]struct {
		change func(*httptool.ImportOptions)
		want   string // names of tools, or an error
	}{
		"patterns":      {func(o *httptool.ImportOptions) { o.Operations = []string{"*.list"} }, "x_notes_list x_tags_list"},
		"tag, excluded": {func(o *httptool.ImportOptions) { o.Tags, o.Exclude = []string{"notes"}, []string{"*.purge"} }, "x_notes_create x_notes_list"},
		"everything":    {func(o *httptool.ImportOptions) { o.Operations, o.Exclude = []string{"*"}, []string{"notes.*"} }, "x_get_anonymous x_tags_list"},
		"renamed": {func(o *httptool.ImportOptions) {
			o.Operations, o.Rename = []string{"*.list"}, map[string]string{"tags.list": "labels"}
		}, "labels x_notes_list"},
		"no name": {func(o *httptool.ImportOptions) {
			o.Operations, o.Rename = []string{"tags.list"}, map[string]string{"tags.list": "a b"}
		}, `it is renamed to "a b"`},
		"empty name": {func(o *httptool.ImportOptions) {
			o.Operations, o.Rename = []string{"tags.list"}, map[string]string{"tags.list": ""}
		}, `it is renamed to ""`},
		"renamed, not ours": {func(o *httptool.ImportOptions) {
			o.Operations, o.Rename = []string{"tags.list"}, map[string]string{"notes.list": "n"}
		}, "named in rename"},
		"no match":         {func(o *httptool.ImportOptions) { o.Operations = []string{"tags.list", "users.*"} }, "no operationId of this pattern"},
		"excludes nothing": {func(o *httptool.ImportOptions) { o.Operations, o.Exclude = []string{"*"}, []string{"Tags.list"} }, `there is "tags.list"`},
	} {
		opts := &httptool.ImportOptions{Source: "s", Server: "https://example.com", Allowlist: []string{"*"}, Prefix: "x_"}
		one.change(opts)
		defs, err := httptool.Import(doc, opts)
		var names []string
		for _, d := range defs {
			names = append(names, d.Name)
		}
		if got := strings.Join(names, " "); err == nil && got != one.want || err != nil && !strings.Contains(err.Error(), one.want) {
			t.Errorf("%s: got %q and %v, want %q", name, got, err, one.want)
		}
	}
}
