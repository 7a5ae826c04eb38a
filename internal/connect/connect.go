// Package connect writes the settings with which coding agents use a Lathe gateway into the agents' configuration files, restores the
// files, and compares them with the settings that it would write. [Agents] lists the supported agents.
//
// A setting is a path of keys and a value. Each file is edited in its own format. It is replaced only if the result parses to the previous
// content with the settings changed and everything else equal. A file that does not parse is never written.
package connect

import (
	"cmp"
	"path/filepath"
	"strings"
)

// The protocols that agents use, as shown to users.
const (
	Chat      = "chat completions"
	Responses = "Responses"
	Messages  = "Messages"
	Gemini    = "generateContent"
)

// An Agent describes a coding agent: its files, and the settings with which it uses a gateway.
type Agent struct {
	Name    string
	Wire    string
	Program string // name of the executable on the PATH
	Tested  string // version whose results are in docs/internals/agents.md
	// Files returns the files of the agent with the entries to set in them.
	Files func(d *Dirs, s *Settings) []File
	// Environment returns variables that must be set when the agent is started, in addition to Settings.KeyEnv. nil: none.
	Environment func(s *Settings) []Variable
	// Ask is the argument before a prompt, "": none. KeyFlag is the flag for the key if the agent accepts it in no other way, else "".
	Ask, KeyFlag string
}

// Start returns an example of a command that starts the agent.
func (a *Agent) Start(s *Settings) string {
	words := a.Program
	if a.Ask != "" {
		words += " " + a.Ask
	}
	if a.KeyFlag != "" && s.KeyEnv != "" {
		words += " " + a.KeyFlag + ` "$` + s.KeyEnv + `"`
	}
	return words + ` "What is 7 + 35?"`
}

// Settings identify the gateway and the model that an agent is to use.
type Settings struct {
	URL    string // base URL of the gateway without path and final slash
	Model  string
	KeyEnv string // environment variable with the API key; "": the gateway requires no key
}

// NoKey is written as the API key for agents that require one, if the gateway requires none.
const NoKey = "unused"

// V1 returns the base URL for clients of OpenAI's APIs.
func (s *Settings) V1() string { return s.URL + "/v1" }

// A Variable is an environment variable to set, either to Value or to the value of the variable From.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
	From  string `json:"from,omitempty"`
}

// Dirs finds the configuration directories of agents.
type Dirs struct {
	Home   string
	Getenv func(string) string
}

// dir returns the directory in the environment variable if that is set, else the directory name below the home directory.
func (d *Dirs) dir(variable, name string) string {
	return cmp.Or(d.Getenv(variable), filepath.Join(d.Home, filepath.FromSlash(name)))
}

// Short returns path with the home directory replaced by ~.
func (d *Dirs) Short(path string) string {
	if rest, ok := strings.CutPrefix(path, d.Home+string(filepath.Separator)); ok {
		return "~/" + filepath.ToSlash(rest)
	}
	return path
}

// A File is a configuration file of an agent, with the entries to set in it.
type File struct {
	Path    string
	Format  *Format
	Entries []Entry
}

// An Entry is a value to set at a path of keys. A path element `[name=value]` selects the object in a list whose member name has that
// value. The last element is always a key, because it may be the name of a model.
type Entry struct {
	Path  []string
	Value any // string, bool, number, maps and lists of them, or Absent
	// Holds is the meaning of the value for [Read]: "url", "model", "key", or "" for any other. An entry with "default" is set only if the
	// file has no value at Path, and counts as equal to any value there.
	Holds string
	// before and after surround the name of the variable in the value of an entry with the key.
	before, after string
}

// Absent as the value of an entry means that the setting is to be removed.
var Absent absent

type absent struct{}

// selector splits a path element of the form `[name=value]`. ok is false if the element does not have this form.
func selector(element string) (name, value string, ok bool) {
	if !strings.HasPrefix(element, "[") || !strings.HasSuffix(element, "]") {
		return "", "", false
	}
	return strings.Cut(element[1:len(element)-1], "=")
}

// selectsInList reports whether a path begins in a list: its first element selects an object, and is not the last.
func selectsInList(path []string) bool {
	_, _, ok := selector(path[0])
	return ok && len(path) > 1
}

// Find returns the agent with the given name, or nil.
func Find(name string) *Agent {
	for _, a := range Agents {
		if a.Name == name {
			return a
		}
	}
	return nil
}

// Names returns the names of all agents.
func Names() []string {
	var names []string
	for _, a := range Agents {
		names = append(names, a.Name)
	}
	return names
}
