package dialecttest

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
)

// A Case is one txtar file, such as
//
//	What this case guards.
//	-- options --
//	{"tools": ["look"]}
//	-- input --
//	<the text of the model>
//	-- want --
//	<the deltas of the parser, as Format writes them>
type Case struct {
	Name    string
	Comment string
	Input   string
	Want    string
	Options dialect.Options
}

// Cases reads the txtar files at the root of fsys.
func Cases(t testing.TB, fsys fs.FS) []Case {
	t.Helper()
	names, err := fs.Glob(fsys, "*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	var cases []Case
	for _, name := range names {
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			t.Fatal(err)
		}
		c, err := readCase(strings.TrimSuffix(name, ".txtar"), string(data))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		cases = append(cases, c)
	}
	return cases
}

func readCase(name, data string) (Case, error) {
	comment, files := txtar(data)
	c := Case{Name: name, Comment: comment, Input: strings.TrimSuffix(files["input"], "\n"), Want: files["want"]}
	if strings.TrimSpace(comment) == "" {
		return c, fmt.Errorf("the comment does not say what the case guards")
	}
	for file := range files {
		if file != "input" && file != "want" && file != "options" {
			return c, fmt.Errorf("unknown file %q", file)
		}
	}
	if files["options"] == "" {
		return c, nil
	}
	var err error
	c.Options, err = readOptions(files["options"])
	return c, err
}

// readOptions reads the file options of a case.
func readOptions(text string) (dialect.Options, error) {
	var o struct {
		Tools      []json.RawMessage `json:"tools"`
		Prefix     string            `json:"prefix"`
		MaxPayload int               `json:"max_payload_bytes"`
		Deprecated bool              `json:"allow_deprecated_syntax"`
		BareCalls  bool              `json:"bare_calls"`
		StartsOpen bool              `json:"thinking_starts_open"`
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&o); err != nil {
		return dialect.Options{}, fmt.Errorf("options: %w", err)
	}
	out := dialect.Options{Prefix: o.Prefix, MaxPayloadBytes: o.MaxPayload, AllowDeprecatedSyntax: o.Deprecated, BareCalls: o.BareCalls, ThinkingStartsOpen: o.StartsOpen}
	for _, raw := range o.Tools {
		var tool struct {
			Name   string          `json:"name"`
			Schema json.RawMessage `json:"schema"`
		}
		if raw[0] == '"' { // a name alone
			raw = json.RawMessage(`{"name":` + string(raw) + `}`)
		}
		if err := json.Unmarshal(raw, &tool); err != nil {
			return out, fmt.Errorf("tools: %w", err)
		}
		out.Tools = append(out.Tools, &lathe.ToolSpec{Name: tool.Name, Schema: tool.Schema})
	}
	return out, nil
}

// txtar reads an archive: a comment, and files behind lines of the form `-- name --`.
func txtar(data string) (comment string, files map[string]string) {
	files = map[string]string{}
	name := ""
	for line := range strings.Lines(data) {
		if inner, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "-- "); ok && strings.HasSuffix(inner, " --") {
			name = strings.TrimSuffix(inner, " --")
			files[name] = ""
			continue
		}
		if name == "" {
			comment += line
		} else {
			files[name] += line
		}
	}
	return comment, files
}

func lookup(t testing.TB, name string) *dialect.Dialect {
	t.Helper()
	d, ok := dialect.Lookup(name)
	if !ok {
		t.Fatalf("no dialect %q", name)
	}
	return d
}

// Run checks each case of fsys against the dialect.
func Run(t *testing.T, fsys fs.FS, name string) {
	d := lookup(t, name)
	for _, c := range Cases(t, fsys) {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			got := Format(Check(t, func() dialect.Parser { return d.NewParser(&c.Options) }, c.Options.Prefix, c.Input))
			if got != c.Want {
				t.Errorf("%s\n got:\n%s\nwant:\n%s", c.Comment, got, c.Want)
			}
		})
	}
}

// fuzzLimits are the values of max_payload_bytes that [Fuzz] tries.
var fuzzLimits = [...]int{64, 0, 12, 200}

// Fuzz fuzzes the dialect's parser with the cases of fsys as the seeds. No text makes the parser panic, and its
// deltas are the same wherever the text is cut, whatever max_payload_bytes is.
func Fuzz(f *testing.F, fsys fs.FS, name string) {
	d := lookup(f, name)
	for _, c := range Cases(f, fsys) {
		for seed := range len(fuzzLimits) {
			f.Add(c.Input, uint64(seed), c.Options.AllowDeprecatedSyntax)
		}
	}
	f.Fuzz(func(t *testing.T, text string, cut uint64, deprecated bool) {
		o := &dialect.Options{AllowDeprecatedSyntax: deprecated, MaxPayloadBytes: fuzzLimits[cut%uint64(len(fuzzLimits))]}
		deltas := parse(t, d.NewParser(o), text, nil)
		whole, shown := Format(Join(deltas)), readable(deltas)
		var cuts []int // 1 to 9 bytes apart, from a generator of random numbers with the seed cut
		for at := 0; ; {
			cut = cut*6364136223846793005 + 1442695040888963407
			at += 1 + int(cut>>33)%9
			if at >= len(text) {
				break
			}
			cuts = append(cuts, at)
		}
		deltas = parse(t, d.NewParser(o), text, cuts)
		if got := Format(Join(deltas)); got != whole {
			t.Errorf("text %q cut at %v:\n got:\n%s\nwant, as for the whole:\n%s", text, cuts, got, whole)
		}
		if got := readable(deltas); got != shown {
			t.Errorf("text %q cut at %v: users see %q, and of the whole %q", text, cuts, got, shown)
		}
	})
}
