package eval

import (
	"slices"
	"time"
)

// A Report contains the runs of an evaluation.
type Report struct {
	Suite string // name of the suite
	Runs  []*Run
	// Skipped are the names, MODEL__SCENARIO__trial_NN, of runs that were not made, because three runs of the model in a row reached no server
	// or were refused, or because [Measure] ended early.
	Skipped []string
}

// A Summary counts the runs of a report, in rows. Models and ModelsScenarios are always set. Categories and ModelsCategories are set only
// if scenarios have categories. All, Scenarios and Categories are set only if Models has one row. A model that was measured with another
// strategy or fallback has a row of its own.
type Summary struct {
	Suite            string   `json:"suite,omitempty"`
	Status           Status   `json:"status"`
	Measured         []About  `json:"measured,omitempty"` // what was measured, for each model
	All              *Row     `json:"all,omitempty"`
	Models           []Row    `json:"models"`
	Categories       []Row    `json:"categories,omitempty"`
	ModelsCategories []Row    `json:"models_categories,omitempty"`
	Scenarios        []Row    `json:"scenarios,omitempty"`
	ModelsScenarios  []Row    `json:"models_scenarios"`
	Skipped          []string `json:"skipped,omitempty"`
}

// An About describes one measured model. Model is its name in the report.
type About struct {
	Model string `json:"model"`
	// About describes the server and the model for readers of the report. It is [Target].About of the model's first run.
	About   map[string]string `json:"about"`
	Started time.Time         `json:"started"` // start of the first run
	Ended   time.Time         `json:"ended"`   // end of the last run
	Trials  int               `json:"trials"`  // the largest number of trials of a scenario
	// Answered are the different model names in the responses of the server, at most 16.
	Answered []string `json:"answered_models,omitempty"`
}

// A Status is the outcome of an evaluation.
type Status string

// The outcomes of an evaluation.
const (
	Passed       Status = "passed"       // all runs that count passed
	Failed       Status = "failed"       // at least one run that counts did not pass
	Inconclusive Status = "inconclusive" // no model failed, but runs were not measured or the server refused them
)

// Status returns the outcome. It is Failed if a run failed and the server did not refuse it. Otherwise it is Inconclusive if a run has no
// score, was refused or was skipped. Otherwise it is Passed. Runs to which the scenario did not apply are ignored.
func (rep *Report) Status() Status {
	status := Passed
	if len(rep.Skipped) > 0 {
		status = Inconclusive
	}
	for _, r := range rep.Runs {
		if r.OK || r.Class == ClassNotProvoked {
			continue
		}
		if r.Scored && !r.Class.Refused() {
			return Failed
		}
		status = Inconclusive
	}
	return status
}

// measured returns the descriptions of the measured models, from their runs.
func (rep *Report) measured() (out []About) {
	for _, r := range rep.Runs {
		i := slices.IndexFunc(out, func(a About) bool { return a.Model == r.Model })
		if i < 0 {
			i = len(out)
			out = append(out, About{Model: r.Model, About: r.About, Started: r.Started})
		}
		out[i].Trials = max(out[i].Trials, r.Trial)
		if end := r.Started.Add(time.Duration(r.ElapsedMS) * time.Millisecond); end.After(out[i].Ended) {
			out[i].Ended = end
		}
		for _, c := range r.Calls {
			if c.Model != "" && !slices.Contains(out[i].Answered, c.Model) && len(out[i].Answered) < maxAnswered {
				out[i].Answered = append(out[i].Answered, c.Model)
			}
		}
		if r.Started.Before(out[i].Started) {
			out[i].Started = r.Started
		}
	}
	return out
}

// maxAnswered is the largest number of names in About.Answered.
const maxAnswered = 16

// Summary counts the runs. Rows are in the order of their first runs.
func (rep *Report) Summary() *Summary {
	s := &Summary{Suite: rep.Suite, Status: rep.Status(), Measured: rep.measured(), Skipped: rep.Skipped}
	s.Models = rows(rep.Runs, func(r *Run) rowKey { return r.key().model() })
	categories := slices.ContainsFunc(rep.Runs, func(r *Run) bool { return r.Category != "" })
	if len(s.Models) == 1 {
		s.All = new(count(rep.Runs))
		s.Scenarios = scenariosOf(rep)
		if categories {
			s.Categories = rows(rep.Runs, func(r *Run) rowKey { return rowKey{Category: r.Category} })
		}
	}
	if categories {
		s.ModelsCategories = rows(rep.Runs, func(r *Run) rowKey {
			k := r.key().model()
			k.Category = r.Category
			return k
		})
	}
	s.ModelsScenarios = rows(rep.Runs, (*Run).key)
	return s
}

// ModelsGroups returns ModelsCategories or, if there are no categories, ModelsScenarios.
func (s *Summary) ModelsGroups() []Row {
	if s.ModelsCategories != nil {
		return s.ModelsCategories
	}
	return s.ModelsScenarios
}

// groupNames returns the names of the groups of rows, in order of appearance.
func groupNames(rows []Row) []string {
	var names []string
	for i := range rows {
		if g := rows[i].group(); !slices.Contains(names, g) {
			names = append(names, g)
		}
	}
	return names
}

// of returns the row of a model (with strategy and fallback) in a group, or nil.
func of(rows []Row, model *Row, group string) *Row {
	for i := range rows {
		if r := &rows[i]; r.model() == model.rowKey && r.group() == group {
			return r
		}
	}
	return nil
}

// Unscored returns the number of runs that were not measured, including those that were not tried.
func (rep *Report) Unscored() int {
	n := len(rep.Skipped)
	for _, r := range rep.Runs {
		if !r.Scored && r.Class != ClassNotProvoked {
			n++
		}
	}
	return n
}

// Scored reports whether any run counts in the rates.
func (rep *Report) Scored() bool {
	return slices.ContainsFunc(rep.Runs, func(r *Run) bool { return r.Scored })
}
