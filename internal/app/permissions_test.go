package app_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/tool"
)

var update = flag.Bool("update", false, "append what is new to the golden files of testdata/permissions")

// Who may do what under a configuration is what it was in earlier versions. Each file of testdata/permissions has a
// configuration and, for each key, the models and tools that it sees, the decision about a call of each tool, and the answer of
// each route. -update appends lines for what is new; it changes and removes none. To change a decision, edit its line by hand
// and name the change under Breaking in CHANGELOG.md.
func TestPermissionsAreThoseOfEarlierVersions(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/permissions/*.txtar")
	if err != nil || len(files) < 3 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			ar, err := txtar.ParseFile(file)
			if err != nil || len(ar.Files) != 2 {
				t.Fatalf("%d parts, %v", len(ar.Files), err)
			}
			got := permissions(t, string(ar.Files[0].Data))
			want := map[string]string{}
			for line := range strings.Lines(string(ar.Files[1].Data)) {
				what, decision, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " = ")
				want[what] = decision
			}
			for _, line := range got {
				what, decision, _ := strings.Cut(line, " = ")
				before, known := want[what]
				delete(want, what)
				switch {
				case !known && *update:
					ar.Files[1].Data = append(ar.Files[1].Data, line+"\n"...)
				case !known && strings.Contains(what, " /"):
					t.Logf("a new route: %s (go test ./app -run Permissions -update appends it)", line)
				case !known:
					t.Errorf("new: %s (go test ./app -run Permissions -update appends it)", line)
				case before != decision:
					t.Errorf("%s: %s, and in earlier versions %s", what, decision, before)
				}
			}
			for what := range want {
				t.Errorf("%s: it is not decided any more", what)
			}
			if *update {
				if err := os.WriteFile(file, txtar.Format(ar), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// keyOf matches the place of the hash of a key in a configuration.
var keyOf = regexp.MustCompile(`HASH-([a-z]+)`)

func permissionKey(name string) string { return "permissions-of-" + name + "-0123456789abcdef" }

// permissions returns one line, "WHO WHAT = DECISION", for everything that is decided under a configuration.
func permissions(t *testing.T, yaml string) (out []string) {
	t.Helper()
	who := map[string]string{"nobody": "none"}
	yaml = keyOf.ReplaceAllStringFunc(yaml, func(s string) string {
		name := strings.TrimPrefix(s, "HASH-")
		who[name] = permissionKey(name)
		sum := sha256.Sum256([]byte(permissionKey(name)))
		return hex.EncodeToString(sum[:])
	})
	var tools []lathe.Tool
	for name, effect := range map[string]lathe.Effect{"reads": lathe.ReadOnly, "repeats": lathe.Idempotent, "writes": lathe.Writes, "undeclared": lathe.EffectUndeclared} {
		tools = append(tools, tool.Func(name, "A tool.", func(_ context.Context, in explained) (explained, error) { return in, nil }, &tool.FuncOptions{Effect: effect, Show: []string{"*"}}))
	}
	h := open(t, yaml, &app.Options{Tools: tools}).Handler()
	for name, key := range who {
		note := func(what, decision string) { out = append(out, name+" "+what+" = "+decision) }
		note("sees the models", listed(t, h, key, "/v1/models", func(m map[string]any) string { return fmt.Sprint(m["id"]) }))
		note("sees the tools", listed(t, h, key, "/api/tools", func(m map[string]any) string {
			return fmt.Sprintf("%v:%v:%v", m["name"], m["effect"], m["advertised"])
		}))
		const both = `{"n":1,"name":"ann"}`
		for one, args := range map[string]string{"reads": both, "repeats": both, "writes": both, "undeclared": both, "calculator": `{"expression":"1"}`, "looks_up": "{}", "sends": "{}"} {
			status, body := call(t, h, key, "POST", "/api/tools/"+one+"/call", `{"arguments":`+args+`}`)
			if strings.Contains(body, "invalid_arguments") {
				t.Errorf("%s: the policy was not asked: %s", one, body)
			}
			note("calls "+one, decided(status, body))
		}
		for _, op := range operations(t) {
			method, path, _ := strings.Cut(op, " ")
			if method != http.MethodGet && name == "root" {
				continue // it may do all this, and then it is done
			}
			note(op, decided(call(t, h, key, method, path, "{}")))
		}
	}
	slices.Sort(out)
	return out
}

// decided returns the status of an answer, and its code if a caller's rights were the reason.
func decided(status int, body string) string {
	if status != http.StatusUnauthorized && status != http.StatusForbidden {
		return "admitted"
	}
	for _, code := range []string{"missing_api_key", "invalid_api_key", "admin_required", "tool_forbidden", "model_forbidden", "approval_required", "policy_denied"} {
		if strings.Contains(body, `"`+code+`"`) {
			return fmt.Sprint(status, " ", code)
		}
	}
	return fmt.Sprint(status)
}

// listed returns the elements of a listing as text.
func listed(t *testing.T, h http.Handler, key, path string, text func(map[string]any) string) string {
	t.Helper()
	status, body := call(t, h, key, "GET", path, "")
	if status != http.StatusOK {
		return decided(status, body)
	}
	var list struct{ Data []map[string]any }
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		t.Fatal(err, body)
	}
	var all []string
	for _, m := range list.Data {
		all = append(all, text(m))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// operations returns the methods and paths of the API's description that are not of the tools above, with "none" for what is in
// braces.
func operations(t *testing.T) (out []string) {
	t.Helper()
	b, err := os.ReadFile("../../server/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	for path, methods := range doc.Paths {
		for method := range methods {
			if method != "parameters" && path != "/api/tools/{name}/call" {
				out = append(out, strings.ToUpper(method)+" "+regexp.MustCompile(`\{[a-z]+\}`).ReplaceAllString(path, "none"))
			}
		}
	}
	slices.Sort(out)
	return out
}

// With serve.default_grant none, a key without lists has nothing over every API, also after a reload.
func TestKeysHaveOnlyWhatTheyAreGiven(t *testing.T) {
	t.Parallel()
	sum := sha256.Sum256([]byte(permissionKey("ann")))
	yaml := "serve: {default_grant: GRANT}\nmodels: {fast: {provider: sim, model: sim/demo}}\nkeys:\n  ann: {sha256: " + hex.EncodeToString(sum[:]) + "}\n"
	a := open(t, strings.Replace(yaml, "GRANT", "none", 1), nil)
	for _, round := range []struct {
		grant  string
		status int
	}{{"none", http.StatusForbidden}, {"all", http.StatusOK}, {"none", http.StatusForbidden}} {
		if err := a.Reload(load(t, strings.Replace(yaml, "GRANT", round.grant, 1))); err != nil {
			t.Fatal(err)
		}
		for path, body := range map[string]string{
			"/v1/chat/completions":       `{"model":"fast","messages":[{"role":"user","content":"x"}]}`,
			"/v1/responses":              `{"model":"fast","input":"x"}`,
			"/v1/messages":               `{"model":"fast","max_tokens":9,"messages":[{"role":"user","content":"x"}]}`,
			"/api/tools/calculator/call": `{"arguments":{"expression":"1"}}`,
		} {
			if status, answer := call(t, a.Handler(), permissionKey("ann"), "POST", path, body); status != round.status {
				t.Errorf("default_grant %s, %s: %d %.200s", round.grant, path, status, answer)
			}
		}
	}
}
