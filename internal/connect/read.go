package connect

import (
	"errors"
	"fmt"
	"strings"
)

// ErrNotConnected is the error of [Read] for an agent whose settings do not name a gateway.
var ErrNotConnected = errors.New("the settings do not name this server")

// Read returns the settings in the files of the agent, and describes each difference from the settings that [Write] would write. keyEnv is
// the variable of the API key for agents whose files do not name it.
func Read(a *Agent, d *Dirs, keyEnv string) (s *Settings, differences []string, err error) {
	s = &Settings{KeyEnv: keyEnv}
	// The path of an entry may contain the name of the model: the first pass finds the model, and the second pass finds these entries.
	for range 2 {
		err := a.eachEntry(d, s, func(_ string, e *Entry, v any, _ bool) {
			text, ok := v.(string)
			if !ok {
				return
			}
			switch e.Holds {
			case "url":
				s.URL = strings.TrimSuffix(strings.TrimSuffix(text, "/"), "/v1")
			case "model":
				s.Model = strings.TrimPrefix(text, provider+"/")
			case "key":
				s.KeyEnv = e.variable(text)
			}
		})
		if err != nil {
			return nil, nil, err
		}
	}
	if s.URL == "" || s.Model == "" {
		return nil, nil, ErrNotConnected
	}
	err = a.eachEntry(d, s, func(file string, e *Entry, v any, ok bool) {
		var what string
		switch {
		case e.Value == Absent && ok:
			what = "is there and must not be"
		case e.Value != Absent && !ok:
			what = "is missing"
		case e.Value != Absent && e.Holds != "default" && !equal(v, e.Value):
			what = "has another value"
		default:
			return
		}
		differences = append(differences, fmt.Sprintf("%s: %s %s", file, strings.Join(e.Path, "."), what))
	})
	return s, differences, err
}

// eachEntry calls visit for each entry of the agent's files, with the path of the file and the value in it; ok is false if the file has none.
func (a *Agent) eachEntry(d *Dirs, s *Settings, visit func(file string, e *Entry, v any, ok bool)) error {
	for _, f := range a.Files(d, s) {
		text, err := ReadFile(f.Path)
		if err != nil {
			return err
		}
		tree, err := f.Format.Decode(text)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
		for _, e := range f.Entries {
			v, ok := Lookup(tree, e.Path)
			visit(f.Path, &e, v, ok)
		}
	}
	return nil
}

// variable returns the name of the environment variable in the value of an entry with the key, or "" if none exists.
func (e *Entry) variable(value string) string {
	name, begins := strings.CutPrefix(value, e.before)
	name, ends := strings.CutSuffix(name, e.after)
	if !begins || !ends || value == NoKey || name == noKeyVariable {
		return ""
	}
	return name
}
