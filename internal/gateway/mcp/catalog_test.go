package mcp_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	served "github.com/lathe-run/lathe/internal/gateway/mcp"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

// ask sends one request over standard streams, in a session, and returns its result or its error.
func (r *rig) ask(c *served.Caller, method, params string) (result map[string]any, code float64) {
	r.t.Helper()
	got := r.lines(c, hello, ready, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params))
	if len(got["1"]) != 1 {
		r.t.Fatalf("%s is answered %q", method, got["1"])
	}
	var m struct {
		Result map[string]any
		Error  struct{ Code float64 }
	}
	if err := json.Unmarshal([]byte(got["1"][0]), &m); err != nil {
		r.t.Fatal(err)
	}
	return m.Result, m.Error.Code
}

// offer puts a catalog in force.
func (r *rig) offer(c *served.Catalog) {
	r.t.Helper()
	if err := r.server.Offer(c); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) readText(c *served.Caller, uri string) (text, kind string, code float64) {
	r.t.Helper()
	res, code := r.ask(c, "resources/read", fmt.Sprintf(`{"uri":%q}`, uri))
	if code != 0 {
		return "", "", code
	}
	content := res["contents"].([]any)[0].(map[string]any)
	text, _ = content["text"].(string)
	kind, _ = content["mimeType"].(string)
	return text, kind, 0
}

// folder writes files into a folder, and one file beside it that clients must not read. It returns the root of the folder.
func folder(t *testing.T) *os.Root {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("outside.txt", "outside")
	write("docs/guide.md", "# Guide")
	write("docs/a b/ü.txt", "spaces")
	write("docs/.env", "hidden")
	write("docs/.git/config.txt", "hidden")
	write("docs/data.bin", "\x00\x01\x02")
	write("docs/liar.png", "not an image")
	write("docs/large.txt", strings.Repeat("x", 2000))
	for link, to := range map[string]string{"docs/out.txt": "../outside.txt", "docs/abs.txt": filepath.Join(dir, "outside.txt"), "docs/in.md": "guide.md", "docs/up": ".."} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(filepath.Join(dir, "docs"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}

// T12: a client reads the files of a folder, and nothing else, whatever path it writes.
func TestT12_ResourceFilesStayInTheirFolder(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, nil)
	r.offer(&served.Catalog{Resources: []served.Resource{{Name: "docs", URI: "docs:///", Files: folder(t).FS(), MaxBytes: 1000}}})
	list, _ := r.ask(nil, "resources/list", `{}`)
	var names []string
	for _, item := range list["resources"].([]any) {
		names = append(names, item.(map[string]any)["name"].(string))
	}
	if want := []string{"a b/ü.txt", "data.bin", "guide.md", "in.md", "large.txt", "liar.png"}; !slices.Equal(names, want) {
		t.Errorf("listed %q\n  want %q", names, want)
	}
	for uri, want := range map[string]string{
		"docs:///guide.md": "# Guide text/markdown", "docs:///in.md": "# Guide text/markdown", "docs:///a%20b/%C3%BC.txt": "spaces text/plain"} {
		text, kind, code := r.readText(nil, uri)
		if code != 0 || text+" "+kind != want {
			t.Errorf("%s: %q %q, error %v", uri, text, kind, code)
		}
	}
	for _, path := range []string{"../outside.txt", "%2e%2e/outside.txt", "..%2foutside.txt", "a%20b/../../outside.txt", "out.txt", "abs.txt", "up/outside.txt", "/etc/passwd", "%2fetc%2fpasswd",
		".env", ".git/config.txt", "a b%00/x", "..\\outside.txt", "guide.md/", "./guide.md", "", "a%20b", "guide.md?x", "guide.md#x", "nothing.txt", "%zz"} {
		if text, _, code := r.readText(nil, "docs:///"+path); code != -32602 {
			t.Errorf("%q: %q, error %v, want -32602", path, text, code)
		}
	}
	if _, _, code := r.readText(nil, "docs:///large.txt"); code != -32000 {
		t.Errorf("a file that is too large: error %v", code)
	}
	for uri, want := range map[string]string{"docs:///data.bin": "application/octet-stream", "docs:///liar.png": "application/octet-stream"} {
		res, _ := r.ask(nil, "resources/read", fmt.Sprintf(`{"uri":%q}`, uri))
		if c := res["contents"].([]any)[0].(map[string]any); c["mimeType"] != want || c["blob"] == nil || c["text"] != nil {
			t.Errorf("%s is told as %v", uri, c)
		}
	}
}

func TestFilesThatFit(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, nil)
	r.offer(&served.Catalog{Resources: []served.Resource{{Name: "docs", URI: "docs:///", Files: folder(t).FS(), Match: []string{"*.md", "a b/*"}}}})
	list, _ := r.ask(nil, "resources/list", `{}`)
	if n := len(list["resources"].([]any)); n != 3 {
		t.Errorf("%d files listed, want 3: %v", n, list)
	}
	if _, _, code := r.readText(nil, "docs:///data.bin"); code != -32602 {
		t.Errorf("a file that fits no pattern: error %v", code)
	}
}

// The policy decides each read of a resource. The sinks get it as a run, and the resource's labels count as used in the session.
func TestReadingsPassPolicy(t *testing.T) {
	t.Parallel()
	var used []string
	p := policyFunc(func(c *lathe.CallInfo) lathe.Decision {
		for _, u := range c.Used {
			used = append(used, u.Name)
		}
		if strings.Contains(string(c.Args), "locked") {
			return lathe.Deny
		}
		return lathe.Allow
	})
	r := newRig(t, &tool.Options{Policy: p}, nil, reader("echo", echo))
	r.offer(&served.Catalog{Resources: []served.Resource{{Name: "note", URI: "note:///{id}", Labels: []string{lathe.LabelReadsPrivate}, Text: "about {id}"}}})
	got := r.lines(nil, hello, ready,
		`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"note:///one%20two"}}`,
		`{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"note:///locked"}}`)
	if !strings.Contains(got["1"][0], `"text":"about one two"`) {
		t.Errorf("read: %s", got["1"])
	}
	if !strings.Contains(got["2"][0], `"code":-32000`) || !strings.Contains(got["2"][0], "policy_denied") {
		t.Errorf("denied: %s", got["2"])
	}
	var tools []string
	for _, e := range r.log.all() {
		if d, ok := e.Data.(*event.ToolCallResult); ok {
			tools = append(tools, d.Tool+" "+d.Status)
		}
	}
	slices.Sort(tools)
	if want := []string{"resource__note error", "resource__note ok"}; !slices.Equal(tools, want) {
		t.Errorf("told %q, want %q", tools, want)
	}
}

// A resource that the policy denies, or that the caller's Allow does not name, is neither listed nor read.
func TestCatalogIsWhatTheCallerMaySee(t *testing.T) {
	t.Parallel()
	r := newRig(t, &tool.Options{Policy: policy.Tools{Deny: []string{"resource__secret"}, Else: policy.AllowAll()}}, nil)
	r.offer(&served.Catalog{
		Resources: []served.Resource{{Name: "open", URI: "t:open", Text: "x"}, {Name: "other", URI: "t:other", Text: "x"}, {Name: "secret", URI: "t:secret", Text: "x"}},
		Prompts:   []served.Prompt{{Name: "hello", Messages: []served.PromptMessage{{Text: "hi"}}}},
	})
	narrow := &served.Caller{Principal: "narrow", Allow: []string{"resource__open"}}
	for _, c := range []struct {
		caller            *served.Caller
		resources, prompt int
		other             float64
	}{{nil, 2, 1, 0}, {narrow, 1, 0, -32602}} {
		list, _ := r.ask(c.caller, "resources/list", `{}`)
		prompts, _ := r.ask(c.caller, "prompts/list", `{}`)
		if n, m := len(list["resources"].([]any)), len(prompts["prompts"].([]any)); n != c.resources || m != c.prompt {
			t.Errorf("%d resources and %d prompts, want %d and %d", n, m, c.resources, c.prompt)
		}
		if _, _, code := r.readText(c.caller, "t:secret"); code == 0 {
			t.Error("what policy denies was read")
		}
		if _, _, code := r.readText(c.caller, "t:other"); code != c.other {
			t.Errorf("t:other: error %v, want %v", code, c.other)
		}
	}
	if _, code := r.ask(narrow, "prompts/get", `{"name":"hello"}`); code != -32602 {
		t.Errorf("a prompt that the key does not name: error %v", code)
	}
}

// Without a catalog its methods are unknown, and the capabilities do not name resources and prompts.
func TestNoCatalog(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, nil)
	got := r.lines(nil, hello)
	for _, word := range []string{"resources", "prompts", "completions"} {
		if strings.Contains(got["0"][0], word) {
			t.Errorf("the capabilities name %s: %s", word, got["0"][0])
		}
	}
	for _, method := range []string{"resources/list", "prompts/list", "completion/complete", "resources/read"} {
		if _, code := r.ask(nil, method, `{}`); code != -32601 {
			t.Errorf("%s: error %v", method, code)
		}
	}
}

func TestPromptsAreFilledIn(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, nil)
	r.offer(&served.Catalog{
		Resources: []served.Resource{{Name: "style", URI: "t:style", Text: "be brief"}},
		Prompts: []served.Prompt{{Name: "review", Arguments: []served.Argument{{Name: "language", Required: true, Values: []string{"Go", "Python", "Prolog"}}, {Name: "tone"}},
			Messages: []served.PromptMessage{{Resource: "t:style"}, {Text: "Review this {language} code, {tone}."}, {Role: lathe.RoleAssistant, Text: "{tone}{tone}"}}}},
	})
	res, code := r.ask(nil, "prompts/get", `{"name":"review","arguments":{"language":"Go","tone":"{language}"}}`)
	if code != 0 {
		t.Fatalf("error %v", code)
	}
	b, _ := json.Marshal(res["messages"])
	const want = `[{"content":{"resource":{"mimeType":"text/plain","text":"be brief","uri":"t:style"},"type":"resource"},"role":"user"},` +
		`{"content":{"text":"Review this Go code, {language}.","type":"text"},"role":"user"},{"content":{"text":"{language}{language}","type":"text"},"role":"assistant"}]`
	if string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
	for _, params := range []string{`{"name":"review"}`, `{"name":"review","arguments":{"language":"Go","other":"x"}}`, `{"name":"nothing"}`} {
		if _, code := r.ask(nil, "prompts/get", params); code != -32602 {
			t.Errorf("%s: error %v", params, code)
		}
	}
	done, _ := r.ask(nil, "completion/complete", `{"ref":{"type":"ref/prompt","name":"review"},"argument":{"name":"language","value":"p"}}`)
	b, _ = json.Marshal(done["completion"])
	if string(b) != `{"total":2,"values":["Python","Prolog"]}` {
		t.Errorf("completed to %s", b)
	}
	for _, params := range []string{`{"ref":{"type":"ref/prompt","name":"review"},"argument":{"name":"none","value":""}}`, `{"ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"language","value":""}}`, `{"argument":{"name":"x","value":""}}`} {
		if _, code := r.ask(nil, "completion/complete", params); code != -32602 {
			t.Errorf("%s: error %v", params, code)
		}
	}
}

func TestBadCatalogs(t *testing.T) {
	t.Parallel()
	message := []served.PromptMessage{{Text: "x"}}
	for want, c := range map[string]served.Catalog{
		"a name has 1 to 50":         {Resources: []served.Resource{{Name: "a b", URI: "t:a", Text: "x"}}},
		"no scheme":                  {Resources: []served.Resource{{Name: "a", URI: "a.txt", Text: "x"}}},
		"exactly one of a text":      {Resources: []served.Resource{{Name: "a", URI: "t:a"}}},
		"the uri of files ends in /": {Resources: []served.Resource{{Name: "a", URI: "t:a", Files: os.DirFS(".")}}},
		"is that of resource a, too": {Resources: []served.Resource{{Name: "a", URI: "t:a", Text: "x"}, {Name: "b", URI: "t:a", Text: "y"}}},
		"the name is taken":          {Resources: []served.Resource{{Name: "a", URI: "t:a", Text: "x"}, {Name: "a", URI: "t:b", Text: "y"}}},
		"no part of the uri":         {Resources: []served.Resource{{Name: "a", URI: "t:{x}", Text: "x", Values: map[string][]string{"y": nil}}}},
		"have the form {name}":       {Resources: []served.Resource{{Name: "a", URI: "t:{x+}", Text: "x"}}},
		"stands twice":               {Resources: []served.Resource{{Name: "a", URI: "t:{x}/{x}", Text: "x"}}},
		"no argument of the prompt":  {Prompts: []served.Prompt{{Name: "a", Messages: []served.PromptMessage{{Text: "{x}"}}}}},
		"there is no resource t:b":   {Prompts: []served.Prompt{{Name: "a", Messages: []served.PromptMessage{{Resource: "t:b"}}}}},
		"either messages or":         {Prompts: []served.Prompt{{Name: "a"}}},
		"its role is":                {Prompts: []served.Prompt{{Name: "a", Messages: []served.PromptMessage{{Role: "system", Text: "x"}}}}},
		"the argument b stands":      {Prompts: []served.Prompt{{Name: "a", Arguments: []served.Argument{{Name: "b"}, {Name: "b"}}, Messages: message}}},
	} {
		s := served.New(nil, nil)
		if err := s.Offer(&c); err == nil || !strings.Contains(err.Error(), want) || lathe.CodeOf(err) != lathe.CodeInvalidConfig {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// A list with more entries than PageSize is returned in pages.
func TestResourcePages(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, &served.Options{PageSize: 3})
	var c served.Catalog
	for i := range 8 {
		c.Resources = append(c.Resources, served.Resource{Name: fmt.Sprint("r", i), URI: fmt.Sprint("t:", i), Text: "x"})
	}
	r.offer(&c)
	s := r.connectStdio(nil)
	var got []string
	for res, err := range s.Resources(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, res.URI)
	}
	if want := "t:0 t:1 t:2 t:3 t:4 t:5 t:6 t:7"; strings.Join(got, " ") != want {
		t.Errorf("got %q", got)
	}
	if _, err := s.ListResources(t.Context(), &mcp.ListResourcesParams{Cursor: "%"}); err == nil {
		t.Error("a cursor that is none was taken")
	}
}

// Subscribers of a file get a notification when the file changes. All clients get one when the catalog changes.
func TestSubscribersAreNotified(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "a.txt")
	if err := os.WriteFile(name, []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	c := served.Catalog{Resources: []served.Resource{{Name: "f", URI: "f:///", Files: root.FS()}}}
	r := newRig(t, nil, nil)
	r.offer(&c)
	l := r.talk(hello, ready)
	l.send(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"f:///a.txt"}}`)
	l.await(`"id":1,"result":{}`)
	l.send(`{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"f:///../x"}}`)
	l.await(`"id":2,"error":{"code":-32602`)
	change := func(text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		notified := make(chan struct{})
		var refreshing sync.WaitGroup
		refreshing.Go(func() {
			for {
				r.server.Refresh() // one look may still be under way: the next one sees what it did not
				select {
				case <-notified:
					return
				case <-time.After(time.Millisecond):
				}
			}
		})
		l.await(`"method":"notifications/resources/updated","params":{"uri":"f:///a.txt"}`)
		close(notified)
		refreshing.Wait()
	}
	change("other")
	again, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	c.Resources = []served.Resource{{Name: "f", URI: "f:///", Files: again.FS()}}
	r.offer(&c)
	_ = root.Close() // files are those of the catalog in force
	change("one more")
	change("and another")
	c.Resources = append(c.Resources, served.Resource{Name: "g", URI: "g:x", Text: "x"})
	r.offer(&c)
	l.await(`"method":"notifications/resources/list_changed"`)
	l.send(`{"jsonrpc":"2.0","id":3,"method":"resources/unsubscribe","params":{"uri":"f:///a.txt"}}`)
	l.await(`"id":3,"result":{}`)
	if err := os.WriteFile(name, []byte("after the end"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.server.Refresh()
	l.send(`{"jsonrpc":"2.0","id":4,"method":"ping"}`)
	if seen := l.await(`"id":4,"result":{}`); strings.Contains(strings.Join(seen, ""), "updated") {
		t.Errorf("told after the subscription had ended: %q", seen)
	}
}
