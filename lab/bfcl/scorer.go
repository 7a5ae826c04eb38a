package bfcl

import (
	"errors"
	"io/fs"
)

// A Scorer scores outputs by category and id. It reads the files of a category when it first needs them. It must not be used by several
// goroutines at once.
type Scorer struct {
	data  fs.FS
	cases map[string]*scoredCategory
}

type scoredCategory struct {
	byID  map[string]*Case
	wrong string // error type of all outputs of the category; "" if it can be scored
}

// NewScorer returns a scorer for a folder with the leaderboard's question files, whose answers are in its folder possible_answer.
func NewScorer(data fs.FS) *Scorer {
	return &Scorer{data: data, cases: map[string]*scoredCategory{}}
}

// Score scores one output. If that is impossible, the verdict has an error type that begins with [InputError] and ends with: `category`
// if there is no such category, `data` if its files are unreadable, `id` if it has no such case, `model_output` if the output is not JSON
// or has a duplicate key, `function` or `answer` if that part of the case does not have the expected form, and `unscored` if
// [Case.Unscored] is not "".
func (s *Scorer) Score(category, id string, modelOutput []byte) Verdict {
	cat := s.cases[category]
	if cat == nil {
		cat = s.read(category)
		if len(cat.byID) > 0 { // names of categories that do not exist are not stored, because there is no limit to them
			s.cases[category] = cat
		}
	}
	c := cat.byID[id]
	switch {
	case cat.wrong != "":
		return verdictOf(cat.wrong)
	case c == nil:
		return verdictOf(InputError + "id")
	}
	return c.Score(modelOutput)
}

func (s *Scorer) read(category string) *scoredCategory {
	out := &scoredCategory{byID: map[string]*Case{}}
	for c, err := range Suite(s.data, category) {
		switch {
		case errors.Is(err, ErrNoCategory):
			out.wrong = InputError + "category"
		case err != nil:
			out.wrong = InputError + "data"
		default:
			out.byID[c.ID] = c
		}
	}
	return out
}
