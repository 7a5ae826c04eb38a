package bfcl

import (
	"errors"
	"io/fs"
)

// A Scorer judges outputs by the cases of its data. It reads each category once, when it is first
// asked for. It may not be used from several goroutines at once.
type Scorer struct {
	data  fs.FS
	cases map[string]*scoredCategory
}

type scoredCategory struct {
	byID  map[string]*Case
	wrong string // why nothing of it can be judged
}

// NewScorer returns a scorer over the folder that holds the leaderboard's files of questions, and
// its answers below possible_answer.
func NewScorer(data fs.FS) *Scorer {
	return &Scorer{data: data, cases: map[string]*scoredCategory{}}
}

// Score judges one output. A case that is not there, or data that cannot be read, makes a verdict
// whose error type begins with [InputError]: `category` where there is no such category, `data` where
// its files cannot be read, `id` where it has no such case, `model_output` where that is not JSON or
// holds a key twice, `function` and `answer` where those of the case are not of the form they should
// have, and `unscored` where [Case.Unscored] says why.
func (s *Scorer) Score(category, id string, modelOutput []byte) Verdict {
	cat := s.cases[category]
	if cat == nil {
		cat = s.read(category)
		if len(cat.byID) > 0 { // names that are none are not kept: anyone may make up more of them
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
