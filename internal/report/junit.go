package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"
)

// An Outcome is the result of a test case.
type Outcome uint8

// Outcomes. Errored means that the test could not be carried out.
const (
	Passed Outcome = iota
	Failed
	Errored
	Skipped
)

// A Suite is a list of test cases in JUnit XML.
type Suite struct {
	Name  string
	Timed bool // write the times of the cases
	Cases []Case
}

// A Case is one test of a [Suite].
type Case struct {
	Name    string
	Outcome Outcome
	// Type and Message describe why a case did not pass. Type may be empty.
	Type, Message string
	Elapsed       time.Duration
}

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Skipped  int          `xml:"skipped,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr,omitempty"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	Time    string        `xml:"time,attr,omitempty"`
	Failure *junitProblem `xml:"failure,omitempty"`
	Error   *junitProblem `xml:"error,omitempty"`
	Skipped *junitProblem `xml:"skipped,omitempty"`
}

type junitProblem struct {
	Type    string `xml:"type,attr,omitempty"`
	Message string `xml:"message,attr"`
}

// WriteJUnit writes suites as JUnit XML, with the totals of all suites.
func WriteJUnit(w io.Writer, suites []Suite) error {
	var all junitSuites
	for i := range suites {
		s := suites[i].junit()
		all.Tests, all.Failures, all.Errors, all.Skipped = all.Tests+s.Tests, all.Failures+s.Failures, all.Errors+s.Errors, all.Skipped+s.Skipped
		all.Suites = append(all.Suites, s)
	}
	return writeXML(w, all)
}

// WriteJUnit writes one suite as JUnit XML, without a testsuites element.
func (s *Suite) WriteJUnit(w io.Writer) error { return writeXML(w, s.junit()) }

func (s *Suite) junit() junitSuite {
	out := junitSuite{Name: xmlText(s.Name), Tests: len(s.Cases)}
	timed := func(d time.Duration) string {
		if !s.Timed {
			return ""
		}
		return fmt.Sprintf("%.3f", d.Seconds())
	}
	var elapsed time.Duration
	for _, c := range s.Cases {
		one := junitCase{Name: xmlText(c.Name), Class: out.Name, Time: timed(c.Elapsed)}
		problem := &junitProblem{xmlText(c.Type), xmlText(c.Message)}
		switch c.Outcome {
		case Passed:
		case Failed:
			one.Failure = problem
			out.Failures++
		case Errored:
			one.Error = problem
			out.Errors++
		case Skipped:
			one.Skipped = problem
			out.Skipped++
		}
		elapsed += c.Elapsed
		out.Cases = append(out.Cases, one)
	}
	out.Time = timed(elapsed)
	return out
}

func writeXML(w io.Writer, v any) error {
	b, err := xml.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, xml.Header+string(b)+"\n")
	return err
}

// xmlText removes characters that XML 1.0 does not allow; the encoder escapes the rest.
func xmlText(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}
