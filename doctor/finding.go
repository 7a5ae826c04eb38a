package doctor

import (
	"slices"
	"strconv"
)

// Severity says how much a finding matters.
type Severity string

// The severities, and what a probe is that could not be made.
const (
	OK      Severity = "ok"      // as it should be
	Note    Severity = "note"    // Lathe makes up for it, or it is good to know
	Warning Severity = "warning" // costs something, or wants a setting
	Broken  Severity = "broken"  // ends runs
	Skipped Severity = "skipped"
)

func rank(s Severity) int {
	return slices.Index([]Severity{Skipped, OK, Note, Warning, Broken}, s)
}

// A Finding is one thing that was seen. Its id and sentences are those of the [Catalogue].
type Finding struct {
	ID       string   `json:"id"` // does not change from version to version
	Severity Severity `json:"severity"`
	Group    string   `json:"group"`
	Seen     string   `json:"seen"`             // one sentence: what was seen
	Then     string   `json:"then"`             // one sentence: what Lathe does about it, or what to set
	Detail   string   `json:"detail,omitempty"` // a number, a name, or the server's words; bounded, and without keys
	Probes   []string `json:"probes,omitempty"` // that saw it
}

// The groups of findings, in the order in which they are told.
const (
	groupServer    = "server"
	groupStream    = "stream"
	groupCalls     = "calls"
	groupArguments = "arguments"
	groupFinish    = "end of an answer"
	groupText      = "text and thinking"
	groupModel     = "model"
	groupErrors    = "errors"
)

// Catalogue returns every finding there is, without details, by group.
func Catalogue() []Finding { return slices.Clone(catalogue) }

func newFinding(id string) *Finding {
	for _, f := range catalogue {
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
	if slices.ContainsFunc(catalogue, func(f Finding) bool { return f.ID == id }) {
		return id
	}
	return other
}
