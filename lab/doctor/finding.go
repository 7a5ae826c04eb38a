package doctor

import (
	"slices"
	"strconv"
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
