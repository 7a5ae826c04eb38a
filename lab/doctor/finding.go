package doctor

import (
	"slices"
	"strconv"
)

// Severity is the severity of a finding.
type Severity string

// The severities, and Skipped for a probe that was not possible.
const (
	OK      Severity = "ok"      // as expected
	Note    Severity = "note"    // Lathe compensates for it, or it is for information
	Warning Severity = "warning" // has a cost, or requires a setting
	Broken  Severity = "broken"  // ends runs
	Skipped Severity = "skipped"
)

func rank(s Severity) int {
	return slices.Index([]Severity{Skipped, OK, Note, Warning, Broken}, s)
}

// A Finding is one observation. The [Catalogue] has its id and sentences.
type Finding struct {
	ID       string   `json:"id"` // stable across versions
	Severity Severity `json:"severity"`
	Group    string   `json:"group"`
	Seen     string   `json:"seen"`             // one sentence: the observation
	Then     string   `json:"then"`             // one sentence: how Lathe handles it, or which setting to use
	Detail   string   `json:"detail,omitempty"` // a number, a name, or the server's message; bounded, and without keys
	Probes   []string `json:"probes,omitempty"` // with this finding
}

// Catalogue returns all possible findings, without details, by group. The caller owns the slice.
func Catalogue() (all []Finding) {
	for _, group := range catalogue {
		for _, e := range group.findings {
			all = append(all, Finding{ID: e.id, Severity: e.severity, Group: group.name, Seen: e.seen, Then: e.then})
		}
	}
	return all
}

func newFinding(id string) *Finding {
	for _, f := range Catalogue() {
		if f.ID == id {
			return &f
		}
	}
	panic("doctor: no finding " + id + " in the catalogue")
}

// statusID returns the finding for an HTTP status that passes, or does not.
func statusID(status int, always bool) string {
	id := "status-" + strconv.Itoa(status)
	other := "status-5xx"
	if always {
		id, other = id+"-always", "status-5xx-always"
	}
	if slices.ContainsFunc(Catalogue(), func(f Finding) bool { return f.ID == id }) {
		return id
	}
	return other
}
