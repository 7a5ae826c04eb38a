package bfcl

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/schema"
	"github.com/lathe-run/lathe/lab/eval"
)

// Select returns the categories in fsys that the words select, in the order of [Categories]. A word is a category, a pattern such as
// live_*, or a category without its language, such as simple. Without words it returns all categories that have verdicts. The error for a
// word that selects no category wraps [ErrNoCategory].
func Select(fsys fs.FS, words ...string) ([]string, error) {
	all, err := Categories(fsys)
	if err != nil {
		return nil, err
	}
	if len(words) == 0 {
		return slices.DeleteFunc(all, func(c string) bool { return readCategory(c).unscored() != "" }), nil
	}
	chosen := map[string]bool{}
	for _, word := range words {
		patterns := []string{word}
		if !slices.Contains(all, word) {
			patterns = append(patterns, word+"_python", word+"_java", word+"_javascript")
		}
		found := false
		for _, c := range all {
			for _, p := range patterns {
				ok, err := path.Match(p, c)
				if err != nil {
					return nil, fmt.Errorf("category %q: %w", word, err)
				}
				chosen[c], found = chosen[c] || ok, found || ok
			}
		}
		if !found {
			return nil, fmt.Errorf("category %q: %w, which has %s", word, ErrNoCategory, strings.Join(all, ", "))
		}
	}
	return slices.DeleteFunc(all, func(c string) bool { return !chosen[c] }), nil
}

// A Measured is a suite of cases for [eval.Measure].
type Measured struct {
	Suite *eval.Suite
	// LeftOut is the number of cases that were left out because the data has no answer to score them by.
	LeftOut int

	cases map[string]*Case // by id
}

// maxID is the maximal length of the id of a case, in bytes, because it is part of file names.
const maxID = 100

// Measure returns a suite with the first limit cases of each category; 0: all. fsys has the leaderboard's files, as in [NewScorer].
func Measure(fsys fs.FS, categories []string, limit int) (*Measured, error) {
	m := &Measured{Suite: &eval.Suite{Name: "bfcl"}, cases: map[string]*Case{}}
	for _, category := range categories {
		n := 0
		for c, err := range Suite(fsys, category) {
			if err != nil {
				return nil, err
			}
			if c.Unscored != "" && readCategory(c.Category).shape != multiTurn {
				m.LeftOut++
				continue
			}
			if c.ID == "" || len(c.ID) > maxID || m.cases[c.ID] != nil {
				return nil, fmt.Errorf("bfcl: %s: the id %.120q is empty, too long, or stands twice", category, c.ID)
			}
			m.cases[c.ID] = c
			m.Suite.Scenarios = append(m.Suite.Scenarios, c.Scenario())
			n++
			if n == limit {
				break
			}
		}
	}
	return m, nil
}

// Scenario returns the case as a scenario for [eval.Measure]: the model receives the first turn, with the case's tools, and its first
// message is scored. The score is the leaderboard's verdict. For cases with several turns, only the form of the calls is scored: see
// [Case.Form].
func (c *Case) Scenario() *eval.Scenario {
	text := ""
	for _, m := range c.Turns[0] {
		if m.Role == lathe.RoleUser {
			text = m.Text()
		}
	}
	return &eval.Scenario{ID: c.ID, Title: c.Category, Category: c.Category, User: text,
		Ask: &eval.Ask{Messages: c.Turns[0], Tools: c.Tools, Key: c.key, Judge: c.judge}}
}

func (c *Case) judge(calls []lathe.ToolCall) eval.Check {
	check := eval.Check{Group: "trace", Assert: "calls are right", Got: c.ScoreCalls(calls).ErrorType}
	switch readCategory(c.Category).shape {
	case noCall:
		check.Assert = "no call is made"
	case someCall:
		check.Assert = "a call is made"
	case multiTurn:
		check.Assert, check.Got = "calls are of known functions, with arguments of their schema", ""
		if err := c.Form(calls); err != nil {
			check.Got = err.Error()
		}
	}
	check.OK = check.Got == ""
	return check
}

// Form returns an error if the calls cannot be correct: calls is empty, one is of a function that the case does not have, or its arguments
// do not satisfy the function's schema. The error contains names, and no arguments.
func (c *Case) Form(calls []lathe.ToolCall) error {
	if len(calls) == 0 {
		return errors.New("no call")
	}
	if _, err := c.ModelOutput(calls); err != nil {
		return err
	}
	for i, call := range calls {
		at := slices.IndexFunc(c.Tools, func(t *lathe.ToolSpec) bool { return t.Name == call.Name })
		if at < 0 {
			return fmt.Errorf("call %d is of a function that is not known", i+1)
		}
		args := cmp.Or(strings.TrimSpace(call.Arguments), "{}")
		s, err := schema.Compile(c.Tools[at].Schema)
		if err != nil {
			return fmt.Errorf("the schema of %s: %w", call.Name, err)
		}
		if bad := s.Validate([]byte(args)); len(bad) > 0 {
			return fmt.Errorf("call %d of %s breaks %s", i+1, call.Name, bad[0].Keyword)
		}
	}
	return nil
}
