package report_test

import (
	"bytes"
	"encoding/xml"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe/internal/report"
)

const nasty = "</td>\"'<script>&\x00\x1b[31m\u202e\r\n"

func TestTableAlignsColumnsAndEndsLinesWithoutBlanks(t *testing.T) {
	t.Parallel()
	var table report.Table
	table.Row("NAME", "N", "TEXT")
	table.Row("größer", 12, "a\tb\nc\x1b")
	table.Row("x", 3.5, "")
	var b bytes.Buffer
	if err := table.Write(&b); err != nil {
		t.Fatal(err)
	}
	if want := "NAME    N    TEXT\ngrößer  12   a b c\nx       3.5\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

func TestMarkdownHasARuleUnderTheHead(t *testing.T) {
	t.Parallel()
	var table report.Table
	table.Row("", "a|b", "n")
	table.Row("x", "", 7)
	var b bytes.Buffer
	if err := table.WriteMarkdown(&b, "llr"); err != nil {
		t.Fatal(err)
	}
	if want := "| | a\\|b | n |\n|---|---|--:|\n| x | | 7 |\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

func TestPageEscapesValues(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	p := report.NewPage(&b, "Report of "+nasty, "p { margin: 0; }\n")
	p.Put(`<p title="{}"`+report.Either(true, " hidden", "")+">{}</p>\n", nasty, 7)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, bad := range []string{"<script", "\x00", " src=", " href=", "url("} {
		if strings.Contains(page, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	for _, want := range []string{"<title>Report of &lt;/td&gt;&#34;&#39;&lt;script&gt;&amp;\uFFFD", "<h1>Report of &lt;", `" hidden>7</p>`, "p { margin: 0; }\n</style>", "default-src 'none'", "</main>\n</body>\n</html>\n"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func TestPageRefusesMoreValuesThanPlaces(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("a value without a place is written nowhere")
		}
	}()
	report.NewPage(&bytes.Buffer{}, "", "").Put("<p>{}</p>", 1, 2)
}

func TestJUnitCountsAndStaysXML(t *testing.T) {
	t.Parallel()
	suite := report.Suite{Name: "m " + nasty, Timed: true, Cases: []report.Case{
		{Name: "a", Elapsed: 1500 * time.Millisecond},
		{Name: "b", Outcome: report.Failed, Type: "T", Message: nasty, Elapsed: time.Second},
		{Name: "c", Outcome: report.Errored, Message: "e"},
		{Name: "d", Outcome: report.Skipped, Message: "s"},
	}}
	var all bytes.Buffer
	if err := report.WriteJUnit(&all, []report.Suite{suite, {Name: "n", Cases: suite.Cases[3:]}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`<testsuites tests="5" failures="1" errors="1" skipped="2">`, `tests="4" failures="1" errors="1" skipped="1" time="2.500">`, `classname="m &lt;/td&gt;`,
		`time="1.500"></testcase>`, `<failure type="T" message="&lt;/td&gt;`, `<error message="e"></error>`, `<skipped message="s"></skipped>`,
		`<testsuite name="n" tests="1" failures="0" errors="0" skipped="1">`, `<testcase name="d" classname="n">`} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("it lacks %s:\n%s", want, all.String())
		}
	}
	var one bytes.Buffer
	if err := suite.WriteJUnit(&one); err != nil {
		t.Fatal(err)
	}
	for _, b := range [][]byte{all.Bytes(), one.Bytes()} {
		var document struct{ XMLName xml.Name }
		if err := xml.Unmarshal(b, &document); err != nil || !strings.HasPrefix(document.XMLName.Local, "testsuite") {
			t.Errorf("%v, %v", err, document.XMLName)
		}
	}
}

func TestJSONKeepsMarkup(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := report.WriteJSON(&b, map[string]string{"a": "<&>"}); err != nil {
		t.Fatal(err)
	}
	if want := "{\n  \"a\": \"<&>\"\n}\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}
