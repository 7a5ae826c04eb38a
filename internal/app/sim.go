package app

import (
	"io"
	"os"
	"slices"
	"strings"

	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/regular"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/sim"
)

// SimOptions reads the scripts in the configuration, and the file for the model sim/script: either script, or replay, a run recorded with
// --json. At most one of the two may be set.
func SimOptions(cfg *config.Config, script, replay string) (*sim.Options, error) {
	opts := &sim.Options{TokenDelay: cfg.Sim.TokenDelay, Scripts: map[string]*sim.Script{}}
	flag, path, parse := "--script", script, sim.ParseScript
	switch {
	case script != "" && replay != "":
		return nil, invalidRequest("give one of --script and --replay")
	case replay != "":
		flag, path, parse = "--replay", replay, sim.ReplayScript
	}
	if path != "" {
		s, err := readScript(os.Open, flag+": ", path, parse) // the file may be a pipe
		if err != nil {
			return nil, err
		}
		opts.Scripts[""] = s
	}
	for name, file := range text.ByName(cfg.Sim.Scripts) {
		s, err := readScript(regular.Open, "", besideConfig(cfg, file), sim.ParseScript)
		if err != nil {
			return nil, invalidConfig("sim.scripts.%s: %w", name, Cause(err))
		}
		opts.Scripts[name] = s
	}
	return opts, nil
}

// readScript opens and parses a file. The error of open begins with prefix.
func readScript(open func(path string) (*os.File, error), prefix, path string, parse func(io.Reader) (*sim.Script, error)) (*sim.Script, error) {
	f, err := open(path)
	if err != nil {
		return nil, invalidRequest("%s%w", prefix, err)
	}
	defer f.Close()
	s, err := parse(f)
	if err != nil {
		return nil, invalidConfig("%s: %w", path, err)
	}
	return s, nil
}

func isSimulated(model string) bool { return strings.HasPrefix(model, "sim/") }

// checkSimulated returns an error if the simulator does not have the model.
func checkSimulated(server *sim.Sim, name string) error {
	base, _, _ := strings.Cut(name, "+")
	names := server.Names()
	switch {
	case slices.Contains(names, base):
		return nil
	case base == "sim/script":
		return invalidRequest("the model sim/script needs the turns to play: --script FILE or --replay FILE")
	}
	return invalidRequest("no simulated model %q: %s", name, text.Suggest(name, names, "`lathe sim list` names them"))
}
