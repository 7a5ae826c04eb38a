package tool_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/tool"
)

func spec(change func(*lathe.ToolSpec)) lathe.Tool {
	f := reader("t", echo)
	change(&f.spec)
	return f
}

func TestSetRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		tools []lathe.Tool
		want  string
	}{
		{"nil", []lathe.Tool{nil}, "number 1: invalid_config: the tool is nil"},
		{"no name", []lathe.Tool{spec(func(s *lathe.ToolSpec) { s.Name = "" })}, `the name ""`},
		{"a dot in the name", []lathe.Tool{spec(func(s *lathe.ToolSpec) { s.Name = "a.b" })}, `the name "a.b"`},
		{"a name of 65", []lathe.Tool{spec(func(s *lathe.ToolSpec) { s.Name = strings.Repeat("x", 65) })}, "1 to 64"},
		{"a name with a letter that looks right", []lathe.Tool{spec(func(s *lathe.ToolSpec) { s.Name = "rеad" })}, "the name"},
		{"a clash", []lathe.Tool{spec(func(s *lathe.ToolSpec) { s.Origin = "mcp:files" }), spec(func(s *lathe.ToolSpec) { s.Origin = "builtin" })},
			"register t: invalid_config: the name is taken: one tool is from mcp:files, the other from builtin"},
		{"no allowlist", []lathe.Tool{spec(func(s *lathe.ToolSpec) { s.Allowlist = nil })}, "no allowlist"},
		{"an empty field", []lathe.Tool{spec(func(s *lathe.ToolSpec) { s.Allowlist = []string{"a..b"} })}, "empty field name"},
		{"an empty path", []lathe.Tool{spec(func(s *lathe.ToolSpec) { s.Allowlist = []string{""} })}, "empty field name"},
		{"a deep path", []lathe.Tool{spec(func(s *lathe.ToolSpec) { s.Allowlist = []string{strings.Repeat("a.", 40) + "a"} })}, "deeper"},
		{"a schema that is no JSON", []lathe.Tool{spec(func(s *lathe.ToolSpec) { s.Schema = []byte(`{`) })}, "schema"},
		{"a schema that is no object", []lathe.Tool{spec(func(s *lathe.ToolSpec) { s.Schema = []byte(`true`) })}, "not an object"},
		{"a schema of a string", []lathe.Tool{spec(func(s *lathe.ToolSpec) { s.Schema = []byte(`{"type":"string"}`) })}, "must be \"object\""},
		{"a schema that does not compile", []lathe.Tool{spec(func(s *lathe.ToolSpec) { s.Schema = []byte(`{"type":"object","required":5}`) })}, "schema"},
		{"a remote schema", []lathe.Tool{spec(func(s *lathe.ToolSpec) { s.Schema = []byte(`{"$ref":"https://example.com/x"}`) })}, "schema"},
		{"a bad output schema", []lathe.Tool{spec(func(s *lathe.ToolSpec) { s.OutputSchema = []byte(`{"type":5}`) })}, "output schema"},
		{"a negative limit", []lathe.Tool{spec(func(s *lathe.ToolSpec) { s.Concurrency = -1 })}, "negative"},
		{"a negative timeout", []lathe.Tool{spec(func(s *lathe.ToolSpec) { s.Timeout = -1 })}, "negative"},
		{"a negative rate", []lathe.Tool{spec(func(s *lathe.ToolSpec) { s.Rate = -1 })}, "rate"},
		{"a limit on no backend", []lathe.Tool{spec(func(s *lathe.ToolSpec) { s.BackendConcurrency = 1 })}, "no backend"},
		{"two limits on one backend", []lathe.Tool{
			spec(func(s *lathe.ToolSpec) { s.Backend, s.BackendConcurrency = "x", 1 }),
			spec(func(s *lathe.ToolSpec) { s.Name, s.Backend, s.BackendConcurrency = "u", "x", 2 })}, "1 calls at once, not 2"},
		{"a late limit on a backend", []lathe.Tool{
			spec(func(s *lathe.ToolSpec) { s.Backend = "x" }),
			spec(func(s *lathe.ToolSpec) { s.Name, s.Backend, s.BackendConcurrency = "u", "x", 2 })}, "without a limit"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := tool.NewSet(tt.tools...)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if lathe.CodeOf(err) != lathe.CodeInvalidConfig {
				t.Errorf("code %q", lathe.CodeOf(err))
			}
		})
	}
}

func TestSetAddIsAllOrNothing(t *testing.T) {
	t.Parallel()
	s := newSet(t, reader("b", echo))
	if err := s.Add(reader("c", echo), reader("b", echo)); err == nil {
		t.Fatal("a clash was taken")
	}
	if _, ok := s.Lookup("c"); ok {
		t.Error("half of an Add is there")
	}
	if err := s.Add(reader("a", echo)); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, spec := range s.Specs() {
		names = append(names, spec.Name)
	}
	if got := strings.Join(names, " "); got != "a b" {
		t.Errorf("specs %q, want them sorted", got)
	}
	var zero error
	_, zero = tool.NewSet(nil, spec(func(s *lathe.ToolSpec) { s.Allowlist = nil }))
	if n := strings.Count(zero.Error(), "invalid_config"); n != 2 {
		t.Errorf("%d errors reported, want both: %v", n, zero)
	}
}

// A run keeps the tools that the set had when the run began.
func TestRunKeepsItsTools(t *testing.T) {
	t.Parallel()
	s := newSet(t, reader("a", echo))
	r, err := tool.NewRunner(s, &tool.Options{Policy: policy.AllowAll()})
	if err != nil {
		t.Fatal(err)
	}
	w := r.Begin(nil, nil)
	if err := s.Add(reader("b", echo)); err != nil {
		t.Fatal(err)
	}
	if got := specNames(w); got != "a" {
		t.Errorf("specs %q", got)
	}
	if res, _, _ := one(t, w, call("b", "")); res.Code != lathe.CodeUnknownTool {
		t.Errorf("code %q", res.Code)
	}
	if got := specNames(r.Begin(nil, nil)); got != "a b" {
		t.Errorf("specs %q of a run that begins later", got)
	}
}

func TestMaxTools(t *testing.T) {
	t.Parallel()
	many := func(n int) (tools []lathe.Tool) {
		for i := range n {
			tools = append(tools, spec(func(s *lathe.ToolSpec) { s.Name = fmt.Sprint("t", i) }))
		}
		return tools
	}
	hidden := spec(func(s *lathe.ToolSpec) { s.Name, s.Hidden = "h", true })
	for n, ok := range map[int]bool{127: true, 128: true, 129: false} {
		if _, err := tool.NewSet(append(many(n), hidden)...); (err == nil) != ok {
			t.Errorf("%d tools: %v", n, err)
		}
	}
	// {"type":"function","function":{"name":"t","description":"…","parameters":{"type":"object"}}}
	const frame = len(`{"type":"function","function":{"name":"t","description":"","parameters":{"type":"object"}}}`)
	for size, ok := range map[int]bool{199_999: true, 200_000: true, 200_001: false} {
		f := spec(func(s *lathe.ToolSpec) { s.Description = strings.Repeat("x", size-frame) })
		if _, err := tool.NewSet(f, hidden); (err == nil) != ok {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	if _, err := tool.NewSetWithin(lathe.Limits{MaxTools: 1}, many(2)...); err == nil || !strings.Contains(err.Error(), "max_tools is 1") {
		t.Errorf("error %v", err)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	r := newRunner(t, nil, reader("srv", echo))
	for _, tt := range []struct {
		name string
		opts *tool.RunOptions
		want string // "" where it is fine
	}{
		{"nothing", nil, ""},
		{"a client tool", &tool.RunOptions{ClientTools: []*lathe.ToolSpec{{Name: "cli"}}}, ""},
		{"a bad name", &tool.RunOptions{ClientTools: []*lathe.ToolSpec{{Name: "c l i"}}}, "the tool name"},
		{"a clash", &tool.RunOptions{ClientTools: []*lathe.ToolSpec{{Name: "srv"}}}, "is taken: one tool is from test, the other from the request"},
		{"twice", &tool.RunOptions{ClientTools: []*lathe.ToolSpec{{Name: "cli"}, {Name: "cli"}}}, "declared twice"},
		{"none", &tool.RunOptions{ClientTools: []*lathe.ToolSpec{nil}}, "is nil"},
		{"too many", &tool.RunOptions{Limits: &lathe.Limits{MaxTools: 1}, ClientTools: []*lathe.ToolSpec{{Name: "cli"}}}, "max_tools is 1"},
		{"too large", &tool.RunOptions{Limits: &lathe.Limits{MaxToolsBytes: 10}}, "max_tools_bytes is 10"},
	} {
		err := r.Check(nil, tt.opts)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
		var le *lathe.Error
		code := lathe.CodeInvalidRequest
		if strings.HasPrefix(tt.name, "too ") {
			code = lathe.CodeTooManyTools
		}
		if err != nil && (!errors.As(err, &le) || le.Code != code) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestNewRunnerRefusesOptions(t *testing.T) {
	t.Parallel()
	named := func(name string) *tool.Options {
		return &tool.Options{Secrets: &tool.Secrets{Known: map[string]secret.Secret{name: secret.New("a-long-enough-value")}}}
	}
	for name, opts := range map[string]*tool.Options{
		"unknown hash mode":        {HashMode: "md5"},
		"keyed without a key":      {HashMode: tool.HashKeyed},
		"secret without a name":    named(""),
		"secret with a bad name":   named("a b"),
		"secret with a taken name": named(secret.Found),
		"short secret, bad name":   {Secrets: &tool.Secrets{Known: map[string]secret.Secret{"a b": secret.New("abc")}}},
	} {
		r, err := tool.NewRunner(nil, opts)
		if r != nil || lathe.CodeOf(err) != lathe.CodeInvalidConfig {
			t.Errorf("%s: runner %v, error %v", name, r, err)
		}
	}
	for _, opts := range []*tool.Options{nil, {}, {HashMode: tool.HashKeyed, HashKey: []byte("k")}, named("db.main")} {
		if r, err := tool.NewRunner(nil, opts); r == nil || err != nil {
			t.Errorf("%+v: %v", opts, err)
		}
	}
}

func TestHashModes(t *testing.T) {
	t.Parallel()
	seen := map[string]tool.HashMode{}
	args := `{"a":"` + strings.Repeat("x", 300) + `"}`
	for _, mode := range []tool.HashMode{tool.HashCompat, tool.HashFull, tool.HashKeyed} {
		_, rec, _ := one(t, open(t, &tool.Options{Policy: policy.AllowAll(), HashMode: mode, HashKey: []byte("key")}, reader("t", echo)), call("t", args))
		hash := find[*event.ToolCallPlanned](t, rec).ArgsPreviewHash
		if other, taken := seen[hash]; taken || len(hash) != 32 {
			t.Errorf("%s: hash %q, also of %s", mode, hash, other)
		}
		seen[hash] = mode
	}
}

// The hash is that of the object with which the call is executed, so that equal calls have equal hashes.
func TestEqualCallsHaveEqualHashes(t *testing.T) {
	t.Parallel()
	hash := func(args string, opts *tool.RunOptions) string {
		_, rec, _ := one(t, newRunner(t, nil, reader("t", echo)).Begin(nil, opts), call("t", args))
		return find[*event.ToolCallPlanned](t, rec).ArgsPreviewHash
	}
	for _, equal := range [][]string{
		{"{}", "", " ", "null", " null\n", "{ }", "```json\n{}\n```", `"{}"`, `""`},
		{`{"a":1,"b":2}`, `{"b": 2, "a": 1}`, "```\n{\"a\":1,\"b\":2}\n```", `" {\"a\":1,\"b\":2}"`, ` {"a":1,"b":2}`},
	} {
		for _, args := range equal {
			if got, want := hash(args, nil), hash(equal[0], nil); got != want {
				t.Errorf("%q has the hash %s, %q has %s", args, got, equal[0], want)
			}
		}
	}
	off := &tool.RunOptions{Settings: &lathe.Settings{Repair: lathe.RepairOff}}
	if hash(`"{}"`, off) == hash("{}", off) {
		t.Error("without repair, a string that is refused has the hash of an object")
	}
}

// A runner without a set knows no tool.
func TestRunnerWithoutSet(t *testing.T) {
	t.Parallel()
	runner, err := tool.NewRunner(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := runner.Begin(nil, nil)
	if res, _, _ := one(t, w, call("t", "")); res.Code != lathe.CodeUnknownTool || len(w.Specs()) != 0 {
		t.Errorf("answer %+v", res)
	}
}
