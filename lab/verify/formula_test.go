package verify

import (
	"bufio"
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/schema"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/lab/doctor"
)

// The figures are those that the K2 Vendor Verifier published on 2025-11-15, with two digits.
func TestSchemaAccuracyAsPublished(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		finished, validated int
		want                string
	}{
		{1958, 1958, "100.00"}, {1827, 1825, "99.89"}, {2119, 2097, "98.96"}, {1850, 1775, "95.95"}, {1878, 1798, "95.74"}, {1874, 1790, "95.52"},
		{2128, 1856, "87.22"}, {2108, 1837, "87.14"}, {2071, 1800, "86.91"}, {1945, 1668, "85.76"}, {1893, 1602, "84.63"}, {1778, 1715, "96.46"},
		{3657, 3037, "83.05"}, {1305, 1302, "99.77"}, {1271, 1229, "96.70"}, {1325, 1007, "76.00"}, {1269, 928, "73.13"}, {1330, 969, "72.86"},
		{1243, 901, "72.49"}, {1277, 925, "72.44"}, {1266, 911, "71.96"}, {644, 544, "84.47"},
	} {
		rate, ok := SchemaAccuracy(c.validated, c.finished)
		if got := fmt.Sprintf("%.2f", 100*rate); !ok || got != c.want {
			t.Errorf("%d of %d: %s, want %s", c.validated, c.finished, got, c.want)
		}
	}
	if _, ok := SchemaAccuracy(0, 0); ok {
		t.Error("a rate of nothing")
	}
}

// The K2 Vendor Verifier published F1 with two digits for five endpoints on 2025-11-15, beside the answers with calls of each and of the vendor's own
// (1958 of kimi-k2-thinking, 1274 of kimi-k2-0905-preview), not how many are in common. For four of them one count in common gives the figure; for
// Nebius (644, 50.60 %) none does.
func TestTriggerSimilarityAsPublished(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                      string
		target, reference, common int
		want                      string
	}{{"NovitaAI", 1778, 1958, 1349, "72.22"}, {"Chutes", 3657, 1958, 1912, "68.10"}, {"Fireworks", 1494, 1958, 1163, "67.38"}, {"Groq", 1042, 1274, 805, "69.52"}} {
		for common := c.common - 1; common <= c.common+1; common++ {
			f1, ok := Similarity{TP: common, FP: c.target - common, FN: c.reference - common}.F1()
			if got := fmt.Sprintf("%.2f", 100*f1); !ok || (got == c.want) != (common == c.common) {
				t.Errorf("%s: %d in common give %s, published is %s", c.name, common, got, c.want)
			}
		}
	}
}

func TestTriggerSimilarity(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		s    Similarity
		want string
	}{
		{Similarity{TP: 76, FP: 24, FN: 24, TN: 10}, "0.7600"}, {Similarity{TP: 3, FP: 1, FN: 2}, "0.6667"}, {Similarity{TP: 1}, "1.0000"},
		{Similarity{FP: 2, FN: 2}, "0.0000"}, {Similarity{TN: 5}, "not defined"}, {Similarity{FP: 2}, "not defined"}, {Similarity{FN: 2}, "not defined"},
	} {
		got := "not defined"
		if f1, ok := c.s.F1(); ok {
			got = fmt.Sprintf("%.4f", f1)
		}
		if got != c.want {
			t.Errorf("%+v: %s, want %s", c.s, got, c.want)
		}
	}
	var s Similarity
	for i := range 16 {
		s.Add(i%2 == 0, i%4 < 2)
	}
	if s != (Similarity{4, 4, 4, 4}) {
		t.Errorf("%+v", s)
	}
}

// Ids of draft 7 with a fragment: one that is nothing else is an anchor in draft 2020-12, others are not allowed there.
var (
	anchor   = regexp.MustCompile(`"\$id": "#(\w+)"`)
	fragment = regexp.MustCompile(`"\$id": "[^"#]+#[^"]+", `)
)

// wrapped is a schema of the Kimi Vendor Verifier as it sends it: below the property value where it is not of an object.
func wrapped(t *testing.T, raw []byte) *schema.Schema {
	t.Helper()
	var head struct {
		Type       any
		Properties map[string]json.RawMessage
		Defs       json.RawMessage `json:"$defs"`
		ID         string          `json:"$id"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		t.Fatal(err)
	}
	text := fragment.ReplaceAllString(anchor.ReplaceAllString(string(raw), `"$$anchor": "$1"`), "")
	if head.Type != "object" || len(head.Properties) == 0 {
		inner, defs := text, ""
		if strings.Contains(text, `"$ref": "#"`) {
			inner = strings.ReplaceAll(text, `"$ref": "#"`, `"$ref": "#/$defs/itself"`)
			defs = `"itself":` + inner
		}
		if head.Defs != nil && head.ID == "" { // they are found from the root
			own := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(string(head.Defs)), "{"), "}")
			defs = strings.Trim(defs+","+own, ",")
		}
		text = `{"type":"object","required":["value"],"additionalProperties":false,"properties":{"value":` + inner + `},"$defs":{` + defs + `}}`
	}
	s, err := schema.Compile([]byte(text))
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return s
}

// The schemas of the Kimi Vendor Verifier compile, and their accuracy over answers made by hand is exact: a call that is no JSON, and
// one whose required value is missing, are wrong for each.
func TestSchemasOfTheKimiVerifier(t *testing.T) {
	t.Parallel()
	f, err := os.Open(testdata.Dir(t, "vendor-verifier", "walle-valid.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	good := map[string]string{ // by suite and line
		"TestBasicTypes 4": `{"value":"abc"}`, "TestBasicTypes 6": `{"value":2}`, "TestBasicTypes 8": `{"value":null}`,
		"TestAnyOf 2": `{"value":{"name":"x"}}`, "TestAdditionalProperties 1": `{"value":{"any":1}}`, "TestAdditionalProperties 3": `{"value":{"a":"b"}}`,
		"TestAdditionalProperties 5": `{"name":"x"}`,
	}
	schemas, validated, finished := 0, 0, 0
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c struct {
			Suite  string
			Line   int
			Schema json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		s := wrapped(t, c.Schema)
		schemas++
		key := fmt.Sprint(c.Suite, " ", c.Line)
		if text, ok := good[key]; ok {
			finished++
			if violations := s.Validate([]byte(text)); len(violations) == 0 {
				validated++
			} else {
				t.Errorf("%s: %s: %v", key, text, violations)
			}
			finished++
			if len(s.Validate([]byte(`{"valu":1,"value":{"nam`))) == 0 {
				validated++
			}
		}
	}
	rate, _ := SchemaAccuracy(validated, finished)
	if err := lines.Err(); err != nil || schemas != 106 || finished != 2*len(good) || fmt.Sprintf("%.4f", rate) != "0.5000" {
		t.Errorf("%v, %d schemas, %d of %d, %.4f", err, schemas, validated, finished, rate)
	}
}

// Each finding of the doctor has a metric, or is named as one that lowers none.
func TestEachFindingHasAMetric(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, d := range definitions {
		known[d.id] = true
	}
	for _, f := range doctor.Catalogue() {
		m, named := ofFinding[f.ID]
		if !named && f.Group != "arguments" && f.Group != "errors" && !known[metricOf(f.ID)] {
			t.Errorf("%s of the group %q has no metric", f.ID, f.Group)
		}
		if m != "" && !known[m] {
			t.Errorf("%s has the metric %q, which there is not", f.ID, m)
		}
	}
}

const nasty = "</td><script>alert(1)</script>\" onload=x \x00\x1b[31m{}"

func TestFilesOfAReport(t *testing.T) {
	t.Parallel()
	value := 0.5
	rep := &Report{Status: Failed, Why: []string{"shape"}, Suite: suiteHash(), Target: Side{Model: nasty, Server: nasty, Answered: nasty + "x"}, Reference: &Side{Model: "b"}, Lathe: nasty,
		Trigger: &Trigger{}, Limits: []LimitsPair{{Target: &Limit{ID: "tools", Taken: 10, Refused: 12, Status: 400}, Reference: &Limit{ID: "tools", Taken: 64}}},
		Metrics: []Metric{{ID: metricWhole, Verdict: MetricPassed, Target: Tally{OK: 99, N: 100}, Reference: &Tally{}, P: &value},
			{ID: metricShape, Verdict: MetricFailed, Target: Tally{OK: 1, N: 2}, Reference: &Tally{OK: 2, N: 2}, P: &value, Deviations: []Deviation{{ID: nasty, Seen: nasty, Target: 1}}},
			{ID: metricStrict, Verdict: MetricNotSupported, Target: Tally{Refused: 4}, Reference: &Tally{}, P: &value}}}
	var page, junit, table, raw, picture bytes.Buffer
	if err := errors.Join(rep.WriteBadgeSVG(&picture), rep.WriteHTML(&page), rep.WriteJUnit(&junit), rep.WriteTable(&table), rep.WriteJSON(&raw)); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"<script", "\x00", " src=", " href=", "%!", "url("} {
		if strings.Contains(page.String(), bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	for _, want := range []string{"&lt;script&gt;", "refused", "10, not 12 (HTTP 400)", "the most that was tried", "not supported"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.ContainsAny(table.String(), "\x00\x1b") {
		t.Error("the table has control characters")
	}
	var drawn struct {
		XMLName xml.Name
		Title   string   `xml:"title"`
		Texts   []string `xml:"g>text"`
	}
	if err := xml.Unmarshal(picture.Bytes(), &drawn); err != nil || drawn.XMLName.Local != "svg" || drawn.Title != "tool calls: 99\u00a0% (n=100), failed" || len(drawn.Texts) != 2 {
		t.Errorf("%v, %+v", err, drawn)
	}
	var suite struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Skipped  int `xml:"skipped,attr"`
	}
	if err := xml.Unmarshal(junit.Bytes(), &suite); err != nil || suite.Tests != 3 || suite.Failures != 1 || suite.Skipped != 1 {
		t.Errorf("%v, %+v", err, suite)
	}
	var again map[string]any
	if err := json.Unmarshal(raw.Bytes(), &again); err != nil || again["schema_version"] != nil && again["status"] != "failed" {
		t.Errorf("%v, %v", err, again["status"])
	}
	if b := rep.Badge(); b.Message != "99 % (n=100), failed" || b.Color != "red" {
		t.Errorf("%+v", b)
	}
	rep.Status = Passed
	if b := rep.Badge(); b.Message != "99 % (n=100)" || b.Color != "green" {
		t.Errorf("%+v", b)
	}
	rep.Status = Inconclusive
	if b := rep.Badge(); b.Color != "lightgrey" {
		t.Errorf("%+v", b)
	}
}

// flaky answers nothing, or a refusal of the key.
type flaky struct{ status int }

func (f flaky) RoundTrip(req *http.Request) (*http.Response, error) {
	if f.status == 0 {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: f.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}")), Request: req}, nil
}

// Without a connection there is no report; a server that refuses the key is asked three times.
func TestNothingIsMeasuredWithoutAServer(t *testing.T) {
	t.Parallel()
	run := func(status int) (*Report, error) {
		return Run(t.Context(), doctor.Target{BaseURL: "http://h.invalid/v1", Model: "m", Transport: flaky{status}}, nil, nil)
	}
	var none *doctor.UnreachableError
	if _, err := run(0); !errors.As(err, &none) {
		t.Errorf("%v", err)
	}
	rep, err := run(401)
	if err != nil {
		t.Fatal(err)
	}
	if rep.Status != Failed || rep.Target.Requests != 3 || rep.Target.NotMeasured == 0 || !slices.Contains(rep.Why, metricAccepted) {
		t.Errorf("%s %v %+v", rep.Status, rep.Why, rep.Target)
	}
	if _, err := Run(t.Context(), doctor.Target{BaseURL: "http://h/v1", Model: "m", Wire: lathe.Wire("telnet")}, nil, nil); err == nil {
		t.Error("a wire that there is not")
	}
}
