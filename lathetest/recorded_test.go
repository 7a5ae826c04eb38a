package lathetest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/tool"
)

// A witness is a test whose failures and cleanups are observed.
type witness struct {
	testing.TB
	failed   []string
	cleanups []func()
}

func (w *witness) Helper()                   {}
func (w *witness) Failed() bool              { return len(w.failed) > 0 }
func (w *witness) Cleanup(f func())          { w.cleanups = append(w.cleanups, f) }
func (w *witness) Errorf(s string, a ...any) { w.failed = append(w.failed, fmt.Sprintf(s, a...)) }
func (w *witness) Fatalf(s string, a ...any) { w.Errorf(s, a...); panic(w) }
func (w *witness) run(f func()) string {
	func() {
		defer func() {
			if v := recover(); v != nil && v != any(w) {
				panic(v)
			}
		}()
		f()
	}()
	for _, c := range w.cleanups {
		c()
	}
	return strings.Join(w.failed, "\n")
}

func who(answer string) lathe.Tool {
	return tool.Func("lookup", "Looks something up.", func(context.Context, struct {
		Name string `json:"name"`
	}) (string, error) {
		return answer, nil
	}, &tool.FuncOptions{Effect: lathe.ReadOnly})
}

// A recording answers the same requests as the model, and a request that differs fails the test with the place of the difference.
func TestRecorded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "testdata", "lookup.json")
	play := func(prompt, answer string, real lathe.Model) (rec *Record, failures string) {
		w := &witness{TB: t}
		failures = w.run(func() {
			m := Recorded(w, file, func() (lathe.Model, error) { return real, nil })
			rec = Run(t, m, prompt, &Options{Tools: []lathe.Tool{who(answer)}})
		})
		return rec, failures
	}
	t.Setenv(recordVariable, "1")
	first, failures := play("Who is Ann?", "a turner", NewModel(Call("lookup", `{"name":"Ann"}`), Text("Ann is a turner.")))
	if failures != "" || first.Err != nil {
		t.Fatal(failures, first.Err)
	}
	t.Setenv(recordVariable, "")
	again, failures := play("Who is Ann?", "a turner", nil)
	if failures != "" || again.Result.Answer != "Ann is a turner." || len(again.Events) != len(first.Events) || again.Result.Usage != first.Result.Usage {
		t.Errorf("%s\n%+v\n%+v", failures, again.Result, first.Result)
	}
	rec, failures := play("Who is Ann?", "a miller", nil)
	if want := `number 2 of the recording, has messages[2].parts[0].content "a turner", not "a miller"`; !strings.Contains(failures, want) || lathe.CodeOf(rec.Err) != lathe.CodeInvalidRequest {
		t.Errorf("%q, want %q", failures, want)
	}
	if _, failures = play("Who is Bob?", "a turner", nil); !strings.Contains(failures, `messages[0].parts[0].text "Who is Ann?", not "Who is Bob?"`) {
		t.Errorf("%q", failures)
	}
	w := &witness{TB: t}
	if failures = w.run(func() { Recorded(w, file, nil) }); !strings.Contains(failures, "2 of the 2 model calls in") {
		t.Errorf("%q", failures)
	}
}

// Failures of a server are replayed; what looks like a key is not written; and a file that is missing or of another version says how to
// record it.
func TestRecordedFailures(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.json")
	record := func(steps ...Step) string {
		t.Setenv(recordVariable, "1")
		defer t.Setenv(recordVariable, "")
		w := &witness{TB: t}
		return w.run(func() {
			m := Recorded(w, file, func() (lathe.Model, error) { return NewModel(steps...), nil })
			Run(t, m, "hi", nil)
		})
	}
	for _, text := range []string{"The key is sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH.", "Authorization: Bearer 0a1b2c3d4e5f60718293a4b5c6d7e8f9",
		"aws_secret_access_key=wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY"} {
		if failures := record(Text(text)); !strings.Contains(failures, "looks like a key") {
			t.Errorf("%s: %q", text, failures)
		}
	}
	if schema := []byte(`{"tools":[{"properties":{"password":{"type":"string","description":"the password of the user"}},"required":["password"]}],"token":5}`); namesSecret(schema) {
		t.Error("a schema with the name of a secret is taken for one")
	}
	w := &witness{TB: t}
	if failures := w.run(func() { Recorded(w, file, nil) }); !strings.Contains(failures, "record it with LATHE_RECORD=1 go test") {
		t.Errorf("%q", failures)
	}
	if failures := record(Fail(401)); failures != "" {
		t.Fatal(failures)
	}
	w = &witness{TB: t}
	failures := w.run(func() {
		if rec := Run(t, Recorded(w, file, nil), "hi", nil); lathe.CodeOf(rec.Err) != lathe.CodeUpstream {
			t.Errorf("%v", rec.Err)
		}
	})
	if failures != "" {
		t.Error(failures)
	}
	if err := os.WriteFile(file, []byte(`{"version":2}`), 0o600); err != nil {
		t.Fatal(err)
	}
	w = &witness{TB: t}
	if failures := w.run(func() { Recorded(w, file, nil) }); !strings.Contains(failures, "has version 2, want 1") {
		t.Errorf("%q", failures)
	}
}

// Two recordings of one file would overwrite each other: the second one fails, in the same test, and in another one also after the first
// has ended. The next execution of a test records its file again.
func TestRecordedTwice(t *testing.T) {
	t.Setenv(recordVariable, "1")
	file := filepath.Join(t.TempDir(), "a.json")
	record := func(tb testing.TB) { Recorded(tb, file, func() (lathe.Model, error) { return NewModel(), nil }) }
	w := &witness{TB: t}
	if failures := w.run(func() { record(w); record(w) }); !strings.Contains(failures, "is recorded by TestRecordedTwice already") {
		t.Errorf("%q", failures)
	}
	w = &witness{TB: t}
	if failures := w.run(func() { record(w) }); failures != "" {
		t.Errorf("%q", failures)
	}
	t.Run("another", func(t *testing.T) {
		w := &witness{TB: t}
		if failures := w.run(func() { record(w) }); !strings.Contains(failures, "is recorded by TestRecordedTwice already") {
			t.Errorf("%q", failures)
		}
	})
}
