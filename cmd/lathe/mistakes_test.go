package main

import (
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// runMistakes runs the commands of a table, each of which has a mistake, and grades the answers: one has the grade A if it says
// what is wrong, where, and what to do. A row is a line "$ COMMAND", after it "code N", and the texts of the three parts, which
// stand in the answer. A part that is missing lowers the grade, and the row says so by "grade B". want is how many rows of each of the two kinds
// of the table, "== KIND", have the grade A at least.
func runMistakes(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: mistakes file")
	}
	secure := httptest.NewUnstartedServer(nil)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // clients do not trust it
	secure.StartTLS()
	ts.Defer(secure.Close)
	ts.Setenv("TLS", secure.URL)
	want, rows, good := map[string]int{"known": 50, "new": 18}, map[string]int{}, map[string]int{}
	kind := ""
	var wrong []string
	report := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	table := ts.ReadFile(args[0])
	for _, row := range strings.Split("\n"+table, "\n$ ")[1:] {
		lines := strings.Split(strings.TrimRight(row, "\n"), "\n")
		next := kind
		parts := map[string]string{}
		for _, line := range lines[1:] {
			if name, ok := strings.CutPrefix(line, "== "); ok {
				next = name
				continue
			}
			name, text, _ := strings.Cut(line, " ")
			parts[name] = text
		}
		if kind == "" {
			kind, _, _ = strings.Cut(strings.TrimPrefix(table, "== "), "\n")
			if next == "" {
				next = kind
			}
		}
		err := ts.Exec("sh", "-c", "{ "+lines[0]+"\n} 2>&1")
		code, answer := exitCodeOf(ts, err), ts.ReadFile("stdout")
		if want := parts["code"]; want == "" || want != string(rune('0'+code)) {
			report("$ %s\nends with %d, want %q:\n%s", lines[0], code, want, answer)
		}
		grade := "A"
		for _, part := range []string{"what", "where", "next"} {
			if parts[part] == "" {
				grade = "B"
			} else if !strings.Contains(answer, expand(ts, parts[part])) {
				report("$ %s\ndoes not say %s: %q\n%s", lines[0], part, expand(ts, parts[part]), answer)
			}
		}
		if stated := parts["grade"]; grade != "A" && stated != grade {
			report("$ %s has the grade %s", lines[0], grade)
		}
		if strings.Contains(answer, "goroutine ") || strings.Contains(answer, "panic:") {
			report("$ %s\n%s", lines[0], answer)
		}
		if rows[kind]++; grade == "A" {
			good[kind]++
		}
		kind = next
	}
	if len(wrong) > 0 {
		ts.Fatalf("%s", strings.Join(wrong, "\n"))
	}
	for kind, n := range want {
		if good[kind] < n {
			ts.Fatalf("%s: %d of %d answers have the grade A, want %d", kind, good[kind], rows[kind], n)
		}
	}
	ts.Logf("grade A: %d of %d, and %d of %d new ones", good["known"], rows["known"], good["new"], rows["new"])
}

// expand replaces the addresses of the script's servers.
func expand(ts *testscript.TestScript, text string) string {
	for _, name := range []string{"SIM", "TLS", "LATHE"} {
		text = strings.ReplaceAll(text, "$"+name, ts.Getenv(name))
	}
	return text
}
