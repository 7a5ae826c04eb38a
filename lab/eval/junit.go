package eval

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// The JUnit form: a testsuite for each model, a testcase for each run. A run that says nothing of
// the model is an error, not a failure. Runs that were not tried are a suite of their own.

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Skipped  int          `xml:"skipped,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	Time    string        `xml:"time,attr"`
	Failure *junitProblem `xml:"failure,omitempty"`
	Error   *junitProblem `xml:"error,omitempty"`
	Skipped *junitSkip    `xml:"skipped,omitempty"`
}

type junitSkip struct {
	Message string `xml:"message,attr"`
}

type junitProblem struct {
	Type    string `xml:"type,attr"`
	Message string `xml:"message,attr"`
}

// WriteJUnit writes the runs as JUnit XML.
func (rep *Report) WriteJUnit(w io.Writer) error {
	var all junitSuites
	index := map[string]int{}
	var elapsed []int64
	for _, r := range rep.Runs {
		row := Row{Model: r.Model, Strategy: r.Strategy, Fallback: r.Fallback}
		label := row.label()
		i, ok := index[label]
		if !ok {
			i = len(all.Suites)
			index[label] = i
			all.Suites = append(all.Suites, junitSuite{Name: xmlText(label)})
			elapsed = append(elapsed, 0)
		}
		s := &all.Suites[i]
		c := junitCase{Name: fmt.Sprintf("%s trial %d", r.Scenario, r.Trial), Class: xmlText(label), Time: seconds(r.ElapsedMS)}
		problem := &junitProblem{Type: string(r.Class), Message: xmlText(r.Error)}
		s.Tests++
		all.Tests++
		switch {
		case r.OK:
		case r.Scored:
			c.Failure = problem
			s.Failures++
			all.Failures++
		default:
			c.Error = problem
			s.Errors++
			all.Errors++
		}
		elapsed[i] += r.ElapsedMS
		s.Time = seconds(elapsed[i])
		s.Cases = append(s.Cases, c)
	}
	if n := len(rep.Skipped); n > 0 {
		s := junitSuite{Name: "not tried", Tests: n, Skipped: n, Time: seconds(0)}
		for _, name := range rep.Skipped {
			s.Cases = append(s.Cases, junitCase{Name: xmlText(name), Class: s.Name, Time: seconds(0), Skipped: &junitSkip{"the model's server gave no answer to the runs before"}})
		}
		all.Suites = append(all.Suites, s)
		all.Tests, all.Skipped = all.Tests+n, n
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func seconds(ms int64) string { return fmt.Sprintf("%.3f", float64(ms)/1000) }

// xmlText leaves out what XML 1.0 cannot hold; the encoder escapes the rest.
func xmlText(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}
