package tool_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/tool"
)

// canary is put together here, so that no scanner takes the file for a leak.
var (
	canary = "c4n4ry" + strings.Repeat("-7f3a", 4)
	ghKey  = "ghp" + "_" + strings.Repeat("a1B2", 9)
)

func keeping(granted ...string) *tool.Options {
	return &tool.Options{Policy: policy.AllowAll(), Secrets: &tool.Secrets{Known: map[string]secret.Secret{"db": secret.New(canary)}, Patterns: true,
		Granted: func(name, secret string) bool {
			for _, g := range granted {
				if g == name+":"+secret {
					return true
				}
			}
			return false
		}}}
}

// saw returns a tool that stores its last arguments in args and returns data.
func saw(name, data string, args *string) *fake {
	return reader(name, func(_ context.Context, a json.RawMessage) (*lathe.Output, error) {
		*args = string(a)
		return &lathe.Output{Data: json.RawMessage(data)}, nil
	})
}

// However it is written, a known value in a result becomes its token, and stays JSON.
func TestT21_ResultsHaveTokensInPlaceOfSecrets(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{
		"value":     `{"a":"x ` + canary + ` y"}`,
		"key":       `{"` + canary + `":1}`,
		"escaped":   `{"a":"` + strings.Replace(canary, "c4", `\u0063\u0034`, 1) + `"}`,
		"base64":    `["` + base64.StdEncoding.EncodeToString([]byte("user:"+canary)) + `"]`,
		"plain":     `"` + canary + `"`,
		"looks so":  `{"a":"` + ghKey + `"}`,
		"some text": `"one\n` + canary + `"`,
	} {
		var args string
		res, rec, _ := one(t, open(t, keeping(), saw("a", data, &args)), call("a", `{}`))
		if res.IsError || strings.Contains(res.Content, "7f3a") || strings.Contains(res.Content, "a1B2") || !strings.Contains(res.Content, "[[secret:") {
			t.Errorf("%s: got %s", name, res.Content)
		}
		if strings.ContainsAny(data[:1], "{[") && !json.Valid([]byte(res.Content)) {
			t.Errorf("%s: not JSON: %s", name, res.Content)
		}
		if e := find[*event.ToolCallResult](t, rec); e.Result != res.Content {
			t.Errorf("%s: the event says %s", name, e.Result)
		}
	}
	// The text of a failure, too.
	f := reader("a", func(context.Context, json.RawMessage) (*lathe.Output, error) {
		return nil, tool.Fail(lathe.CodeExecutionFailed, "login with %s failed", canary)
	})
	if res, _, _ := one(t, open(t, keeping(), f), call("a", `{}`)); strings.Contains(res.Content, canary) || !strings.Contains(res.Content, "[[secret:db:") {
		t.Errorf("failure: got %s", res.Content)
	}
}

// A token is worth its value to the tool that is granted it, and to no other.
func TestT22_TokensAreResolvedForGrantedToolsOnly(t *testing.T) {
	t.Parallel()
	var source, granted, other string
	seen := newWatcher()
	o := keeping("login:db", "login:found")
	var policyArgs, journalArgs string
	o.Policy = policy.All(seen, spy{&policyArgs})
	o.Journal = func(_ context.Context, c *lathe.CallInfo, _ lathe.Verdict) error {
		journalArgs = string(c.Args)
		return nil
	}
	w := open(t, o, saw("source", `{"db":"`+canary+`","gh":"`+ghKey+`"}`, &source), saw("login", `1`, &granted), saw("other", `1`, &other))
	res, _, _ := one(t, w, call("source", `{}`))
	var tokens struct{ DB, GH string }
	if err := json.Unmarshal([]byte(res.Content), &tokens); err != nil {
		t.Fatal(err)
	}
	use := `{"a":"u:` + tokens.DB + `@","b":["` + tokens.GH + `"]}`
	if res, _, _ := one(t, w, call("login", use)); res.IsError || granted != `{"a":"u:`+canary+`@","b":["`+ghKey+`"]}` {
		t.Errorf("granted: got %s, the tool got %s", res.Content, granted)
	}
	if policyArgs != use || journalArgs != use {
		t.Errorf("policy saw %s, the journal %s", policyArgs, journalArgs)
	}
	for name, tt := range map[string]struct{ tool, args, rule string }{
		"not granted":          {"other", `{"a":"` + tokens.DB + `"}`, "secret.ungranted"},
		"found, not granted":   {"other", `{"a":"` + tokens.GH + `"}`, "secret.ungranted"},
		"unknown name":         {"login", `{"a":"[[secret:nobody:12345678]]"}`, "secret.unknown"},
		"a pattern for a name": {"login", `{"a":"[[secret:**:12345678]]"}`, "secret.unknown"},
		"another number":       {"login", `{"a":"` + tokens.DB[:len(tokens.DB)-3] + `x]]"}`, "secret.unknown"},
		"not whole":            {"login", `{"a":"[[secret:db"}`, "secret.unknown"},
		"escaped":              {"other", `{"a":"\u005b` + tokens.DB[1:] + `"}`, "secret.ungranted"},
		"as a key":             {"other", `{"` + tokens.DB + `":1}`, "secret.ungranted"},
		"the value itself":     {"other", `{"a":"` + canary + `"}`, "secret.ungranted"},
	} {
		other, granted = "", ""
		res, rec, _ := one(t, w, call(tt.tool, tt.args))
		if res.Code != lathe.CodePolicyDenied || find[*event.ToolCallResult](t, rec).PolicyRule != tt.rule || other+granted != "" || strings.Contains(res.Content, canary) {
			t.Errorf("%s: got %s, the tools got %q", name, res.Content, other+granted)
		}
	}
	// The token of a key that was found in one run is not valid in another run.
	r := newRunner(t, o, saw("login", `1`, &granted))
	if res, _, _ := one(t, r.Begin(&lathe.RunInfo{RunID: "r2"}, nil), call("login", `{"a":"`+tokens.GH+`"}`)); res.Code != lathe.CodePolicyDenied {
		t.Errorf("in another run: got %s", res.Content)
	}
}

// spy is a policy that stores the arguments that it gets.
type spy struct{ args *string }

func (s spy) Tool(*lathe.RunInfo, *lathe.ToolSpec) lathe.Verdict {
	return lathe.Verdict{Decision: lathe.Allow}
}
func (s spy) Step(*lathe.StepInfo) lathe.Verdict { return lathe.Verdict{Decision: lathe.Allow} }
func (s spy) Call(c *lathe.CallInfo) lathe.Verdict {
	*s.args = string(c.Args)
	return lathe.Verdict{Decision: lathe.Allow}
}

// Without Secrets the runner does not search for values, and treats tokens as text.
func TestSecretsAreOffWhereThereAreNone(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*tool.Secrets{"nil": nil, "none": {}, "too short": {Known: map[string]secret.Secret{"x": secret.New("abc")}}} {
		var args string
		const text = `{"a":"[[secret:db:12345678]]"}`
		res, _, _ := one(t, open(t, &tool.Options{Policy: policy.AllowAll(), Secrets: s}, saw("a", `"abc"`, &args)), call("a", text))
		if res.Content != "abc" || args != text {
			t.Errorf("%s: got %s, the tool got %s", name, res.Content, args)
		}
	}
}

// An approval is asked for with the token, and edited arguments are looked at again.
func TestT21_ApproversSeeTokens(t *testing.T) {
	t.Parallel()
	var args string
	o := keeping("login:db")
	o.Policy = policy.Effects{ReadOnly: lathe.Ask}
	o.Approver = answers{Approved: true, Arguments: json.RawMessage(`{"b":"` + canary + `"}`)}
	res, rec, _ := one(t, open(t, o, saw("login", `1`, &args)), call("login", `{"a":"`+canary+`"}`))
	if e := find[*event.ApprovalRequested](t, rec); strings.Contains(string(e.Arguments), canary) || res.IsError || args != `{"b":"`+canary+`"}` {
		t.Errorf("asked with %s, got %s, the tool got %s", e.Arguments, res.Content, args)
	}
	o.Secrets.Granted = nil
	if res, _, _ := one(t, open(t, o, saw("login", `1`, &args)), call("login", `{}`)); res.Code != lathe.CodePolicyDenied {
		t.Errorf("edited to hold a secret: got %s", res.Content)
	}
}

func FuzzSecretsKeepJSON(f *testing.F) {
	f.Add(`{"a":"x","b":[1,-2.5e3,"\u00e9\"q"]}`, "-2.5e3xx")
	f.Add(`"[[secret:db"`, "secret:d")
	f.Fuzz(func(t *testing.T, data, value string) {
		if !json.Valid([]byte(data)) {
			return
		}
		var args string
		o := &tool.Options{Policy: policy.AllowAll(), Secrets: &tool.Secrets{Known: map[string]secret.Secret{"db": secret.New(value)}}}
		a := saw("a", data, &args)
		w := open(t, o, a)
		res, _, _ := one(t, w, call("a", `{}`))
		if !res.IsError && strings.HasPrefix(strings.TrimSpace(data), "{") && !json.Valid([]byte(res.Content)) {
			t.Errorf("%q became %q", data, res.Content)
		}
		one(t, w, call("a", data))
	})
}

// T21: no secret reaches the model in what is no text either.
func TestT21_BlobsAreSearched(t *testing.T) {
	t.Parallel()
	const key = "a-known-value-of-the-operator"
	opts := &tool.Options{Policy: policy.AllowAll(), Secrets: &tool.Secrets{Known: map[string]secret.Secret{"key": secret.New(key)}}}
	for _, c := range []struct {
		name, data string
		blobs      []lathe.Blob
		kept       int
		code       lathe.Code
	}{
		{"nothing in it", `null`, []lathe.Blob{{MediaType: "image/png", Data: []byte("\x89PNG\x00")}}, 1, ""},
		{"a text", `null`, []lathe.Blob{{MediaType: "text/plain", Data: []byte("the key: " + key)}}, 1, ""},
		{"an image beside data", `{"a":1}`, []lathe.Blob{{MediaType: "image/png", Data: []byte("\x89PNG\x00" + key)}, {MediaType: "image/png", Data: []byte("\x89PNG\x00")}}, 1, ""},
		{"an image alone", `null`, []lathe.Blob{{MediaType: "image/png", Data: []byte("\x89PNG\x00" + key)}}, 0, lathe.CodeRedactionFailed},
		{"an address", `{"a":1}`, []lathe.Blob{{URL: "https://example.com/?k=" + key}}, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out := &lathe.Output{Data: json.RawMessage(c.data), Blobs: c.blobs}
			res, _, _ := one(t, open(t, opts, reader("shows", func(context.Context, json.RawMessage) (*lathe.Output, error) { return out, nil })), call("shows", `{}`))
			if len(res.Blobs) != c.kept || res.Code != c.code {
				t.Errorf("%d blobs, code %q; want %d, %q", len(res.Blobs), res.Code, c.kept, c.code)
			}
			for _, b := range res.Blobs {
				if strings.Contains(string(b.Data)+b.URL, key) {
					t.Errorf("shown: %s", b.Data)
				}
			}
			if c.name == "a text" && !strings.Contains(string(res.Blobs[0].Data), "[[secret:key:") {
				t.Errorf("no token: %s", res.Blobs[0].Data)
			}
		})
	}
}
