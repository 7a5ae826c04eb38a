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
		for _, f := range a.Files(d, s) {
			tree, err := f.read()
			if err != nil {
				return nil, nil, err
			}
			for _, e := range f.Entries {
				v, _ := Lookup(tree, e.Path)
				text, ok := v.(string)
				if !ok {
					continue
				}
				switch e.Holds {
				case "url":
					s.URL = strings.TrimSuffix(strings.TrimSuffix(text, "/"), "/v1")
				case "model":
					s.Model = strings.TrimPrefix(text, provider+"/")
				case "key":
					s.KeyEnv = e.variable(text)
				}
			}
		}
	}
	if s.URL == "" || s.Model == "" {
		return nil, nil, ErrNotConnected
	}
	for _, f := range a.Files(d, s) {
		tree, err := f.read()
		if err != nil {
			return nil, nil, err
		}
		for _, e := range f.Entries {
			v, ok := Lookup(tree, e.Path)
			switch {
			case e.Value == Absent && ok:
				differences = append(differences, fmt.Sprintf("%s: %s is there and must not be", f.Path, strings.Join(e.Path, ".")))
			case e.Value != Absent && !ok:
				differences = append(differences, fmt.Sprintf("%s: %s is missing", f.Path, strings.Join(e.Path, ".")))
			case e.Value != Absent && e.Holds != "default" && !equal(v, e.Value):
				differences = append(differences, fmt.Sprintf("%s: %s has another value", f.Path, strings.Join(e.Path, ".")))
			}
		}
	}
	return s, differences, nil
}

// read returns the content of the file, or an empty map if it does not exist.
func (f *File) read() (map[string]any, error) {
	text, err := ReadFile(f.Path)
	if err != nil {
		return nil, err
	}
	tree, err := f.Format.Decode(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path, err)
	}
	return tree, nil
}

// variable returns the name of the environment variable in the value of an entry with the key, or "" if none exists.
func (e *Entry) variable(value string) string {
	name, ok := strings.CutPrefix(value, e.before)
	if ok {
		name, ok = strings.CutSuffix(name, e.after)
	}
	if !ok || value == NoKey || name == noKeyVariable {
		return ""
	}
	return name
}
