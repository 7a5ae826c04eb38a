package doctor

import (
	"slices"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/secret"
)

// A Severity says how much a finding matters.
type Severity string

// The severities. Skipped is the outcome of a probe that was not made.
const (
	OK      Severity = "ok"      // as expected
	Note    Severity = "note"    // Lathe compensates for it, or it is for information
	Warning Severity = "warning" // has a cost, or requires a setting
	Broken  Severity = "broken"  // makes runs fail
	Skipped Severity = "skipped"
)

func rank(s Severity) int {
	return slices.Index([]Severity{Skipped, OK, Note, Warning, Broken}, s)
}

// A Finding is one observation about a server.
type Finding struct {
	ID       string   `json:"id"` // does not change between versions
	Severity Severity `json:"severity"`
	Group    string   `json:"group"`
	Seen     string   `json:"seen"`             // the observation, in one sentence
	Then     string   `json:"then"`             // how Lathe handles it, or which setting to use, in one sentence
	Detail   string   `json:"detail,omitempty"` // a number, a name, or the error text of the server; limited in size, and without keys
	Probes   []string `json:"probes,omitempty"` // names of the probes with this finding
}

// statusID returns the finding for an HTTP status. suffix is "-always" if the repeated request failed, too, and "" if it succeeded.
func statusID(status int, suffix string) string {
	id := "status-" + strconv.Itoa(status) + suffix
	if slices.ContainsFunc(Catalogue(), func(f Finding) bool { return f.ID == id }) {
		return id
	}
	return "status-5xx" + suffix
}

// findings collects what is found out about a target: find and findAndMend add findings to the current probe, and mend adds settings.
type findings struct {
	target Target
	report *Report
	found  map[string]*Finding // by id; Run copies them to the report
	mends  []Setting           // settings that findings require
	probe  *Probe              // current probe, an element of report.Probes; run, findInText and Asker.newReader set it
}

// find adds a finding to the current probe. The details, if any, are appended to its observation; they may contain text of the server.
func (x *findings) find(id string, details ...string) {
	f := x.found[id]
	if f == nil {
		f = newFinding(id)
		x.found[id] = f
	}
	if detail := strings.Join(details, ""); detail != "" && f.Detail == "" {
		f.Detail = clip(secret.Scrub(detail, x.secrets()...))
	}
	if !slices.Contains(f.Probes, x.probe.Name) {
		f.Probes = append(f.Probes, x.probe.Name)
		x.probe.Findings = append(x.probe.Findings, id)
	}
}

func (x *findings) secrets() []secret.Secret {
	list := []secret.Secret{x.target.Key}
	for _, v := range x.target.Headers {
		list = append(list, v)
	}
	return list
}

// decide sets the outcome of the current probe to the worst severity of its findings.
func (x *findings) decide() {
	for _, id := range x.probe.Findings {
		if s := x.found[id].Severity; rank(s) > rank(x.probe.Outcome) {
			x.probe.Outcome = s
		}
	}
}

// maxDetail is the number of bytes of a text that a finding quotes.
const maxDetail = 240

// clip returns the first maxDetail bytes of a text, on one line.
func clip(s string) string {
	return text.Clip(strings.Join(strings.Fields(s), " "), maxDetail)
}
