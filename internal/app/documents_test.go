package app

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/lathe-run/lathe/internal/config"
)

func loadDocument(t *testing.T, doc string) *config.Config {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"api.json": doc, "lathe.yaml": "tools: {builtin: [], openapi: {a: {file: api.json, server: \"https://example.com\", tags: [x], allowlist: [\"*\"]}}}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := LoadConfig(filepath.Join(dir, "lathe.yaml"), &LoadOptions{Environ: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func oneOperation(id string) string {
	return fmt.Sprintf(`{"openapi":"3.1.0","info":{"title":"t","version":"1"},"paths":{"/a":{"get":{"operationId":%q,"tags":["x"],"responses":{"200":{"description":"ok"}}}}}}`, id)
}

// The document that the check of a configuration has read is the one that its tools are made of, and is let go then; a changed file
// is read again.
func TestDocumentIsReadOnce(t *testing.T) {
	cfg := loadDocument(t, oneOperation("first"))
	kept, ok := checked.Load(weak.Make(cfg))
	if !ok || len(kept.(documents)) != 1 {
		t.Fatalf("the check has left %v", kept)
	}
	docs := takeDocuments(cfg)
	if _, ok := checked.Load(weak.Make(cfg)); ok || len(docs) != 1 || takeDocuments(cfg) != nil {
		t.Errorf("%d documents, which are kept", len(docs))
	}
	first, err := docs.read([]byte(oneOperation("first")))
	if err != nil || len(docs) != 1 {
		t.Errorf("the document is read again: %v", err)
	}
	if other, err := docs.read([]byte(oneOperation("second"))); err != nil || other == first {
		t.Errorf("another document is not read: %v", err)
	}
	if _, err := (documents)(nil).read([]byte(oneOperation("first"))); err != nil {
		t.Error(err)
	}

	cfg = loadDocument(t, oneOperation("first"))
	if err := os.WriteFile(cfg.Tools.OpenAPI["a"].Path, []byte(oneOperation("second")), 0o600); err != nil {
		t.Fatal(err)
	}
	set, err := NewToolSet(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := set.Lookup("second"); !ok {
		t.Error("the tools are those of a document that is not there any more")
	}
	if _, ok := checked.Load(weak.Make(cfg)); ok {
		t.Error("the documents are kept while the tools are in use")
	}
	runtime.KeepAlive(cfg)
}

// Operations that a pattern leaves out, and tools that hardly any call matches, are warnings of the configuration at the place of their
// entry, and notes of the tools.
func TestDocumentsWarn(t *testing.T) {
	t.Parallel()
	cfg := loadDocument(t, `{"openapi":"3.0.3","info":{"title":"t","version":"1"},"paths":{
		"/raw":{"post":{"operationId":"raw","tags":["x"],"requestBody":{"content":{"application/octet-stream":{}}}}},
		"/animals":{"post":{"operationId":"add","tags":["x"],"requestBody":{"content":{"application/json":{"schema":{"oneOf":[
			{"properties":{"kind":{"type":"string"},"lives":{"type":"integer"}}},{"properties":{"kind":{"type":"string"},"bark":{"type":"boolean"}}}]}}}}}},
		"/noid":{"get":{"tags":["x"]}}}}`)
	var got []string
	for _, w := range cfg.Warnings() {
		got = append(got, w.Key+" "+w.Message)
		if !strings.HasSuffix(w.File, "lathe.yaml:1") {
			t.Errorf("%s: the place is %q", w.Key, w.File)
		}
	}
	if len(got) != 2 || !strings.HasPrefix(got[0], "tools.openapi.a.tags 1 operation left out") || !strings.HasPrefix(got[1], "tools.openapi.a.file 1 tool with a oneOf that accepts no call: add: ") {
		t.Errorf("got %q", got)
	}
	set, err := NewToolSet(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"add", "get_noid"} {
		if _, ok := set.Lookup(name); !ok {
			t.Errorf("there is no tool %s", name)
		}
	}
	b := OpenHTTPTools(cfg)
	defer b.Close()
	if n := b.Notes()["a"]; n == nil || len(n.LeftOut) != 1 || !strings.HasPrefix(n.LeftOut[0], "raw: its body is of type application/octet-stream") || len(n.Warnings) != 1 {
		t.Errorf("got the notes %v", n)
	}
}
