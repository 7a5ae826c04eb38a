package config

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/text"
)

// maxConfigBytes is the largest size of the configuration file, maxProblems the largest number of reported problems, and minHashKey the
// smallest size of a key for hashes in bytes.
const (
	minHashKey     = 16
	maxConfigBytes = 1 << 20
	maxProblems    = 100
)

// LoadOptions are the sources of a configuration besides its file.
type LoadOptions struct {
	// Environ is the environment as os.Environ returns it; nil is an empty one. LATHE_ and a key in
	// capitals, its dots as _, sets that key over the file. References ${NAME} are looked up in it.
	Environ []string
	// Overrides are set over file and environment, in order.
	Overrides []Override
	// Tools and Dialects are the names that tools.builtin and a model's dialect may have; nil: any.
	Tools, Dialects []string
	// Expand says what the profile, the presets, the transforms and the overrides of a model come
	// to; isSet reports whether a key of the model stands in the file or was set by a flag. nil: they
	// are left as they are.
	Expand func(m *Model, isSet func(key string) bool) Expansion
	// Check looks at a configuration in which nothing else is wrong, whose paths start at dir. The
	// Key of each problem says where it belongs; the rest is filled in.
	Check func(c *Config, dir string) []Problem
}

// An Override sets one key, from a command-line flag.
type Override struct {
	From  string // how errors call it, such as "--model"
	Key   string // from the top, such as "models.fast.base_url"; a model that is not there is made
	Value string
}

// Default returns the configuration of an empty file.
func Default() *Config {
	c := &Config{Models: map[string]*Model{}, origin: map[string]string{}, entries: map[string]bool{}}
	applyDefaults(c.rows())
	return c
}

func newModel(name, provider string) *Model {
	m := &Model{Name: name}
	applyDefaults(rowsOf(reflect.ValueOf(m)))
	m.Provider = provider
	m.setDerived()
	return m
}

// setDerived sets the fields whose default depends on other keys.
func (m *Model) setDerived() {
	if m.ReadTimeout == 0 {
		m.ReadTimeout = m.ClientTimeout
	}
	if m.Model == "" {
		m.Model = m.Name
	}
	if m.Wire == "" {
		m.Wire = wireAt(m.BaseURL.Reveal())
	}
}

// wireAt returns the default protocol for the base URL of a server.
func wireAt(base string) lathe.Wire {
	u, err := url.Parse(base)
	if err != nil {
		return lathe.WireOpenAIChat
	}
	switch u.Hostname() {
	case "api.anthropic.com":
		return lathe.WireMessages
	case "generativelanguage.googleapis.com":
		if !strings.Contains(u.Path+"/", "/openai/") { // where Google serves chat completions
			return lathe.WireGemini
		}
	}
	return lathe.WireOpenAIChat
}

// Load reads the configuration file at path ("": none) and overrides its values by those of the environment and then of the flags. The
// error is a *[lathe.Error] of code invalid_config that wraps [Problems], or the error of reading the file.
func Load(path string, opts *LoadOptions) (*Config, error) {
	var o LoadOptions
	if opts != nil {
		o = *opts
	}
	var b []byte
	if path != "" {
		var err error
		if b, err = readAll(path); err != nil {
			return nil, lathe.CodeInvalidConfig.Wrap("config", err)
		}
	}
	return parse(path, b, &o)
}

func readAll(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a folder: name the configuration file in it, such as %s", path, filepath.Join(path, "lathe.yaml"))
	}
	b, err := io.ReadAll(io.LimitReader(f, maxConfigBytes+1))
	if err == nil && len(b) > maxConfigBytes {
		err = fmt.Errorf("%s is larger than %s", path, formatSize(maxConfigBytes))
	}
	return b, err
}

// A loader reads one configuration and collects its problems.
type loader struct {
	opts     *LoadOptions
	file     string // name of the configuration file without its folder, for problems
	resolver resolver
	cfg      *Config
	rows     []row          // the settings of cfg
	lines    map[string]int // line of each key that is set in the file
	problems Problems
}

// parse reads the sources one after the other: the content b of the file at path, the environment, the overrides, and the profiles and presets
// of models. It then checks the whole.
func parse(path string, b []byte, opts *LoadOptions) (*Config, error) {
	l := &loader{opts: opts, file: filepath.Base(path), cfg: Default(), lines: map[string]int{},
		resolver: resolver{env: map[string]string{}, dir: filepath.Dir(path)}}
	for _, kv := range opts.Environ {
		if name, v, ok := strings.Cut(kv, "="); ok {
			l.resolver.env[name] = v
		}
	}
	l.cfg.dir = l.resolver.dir
	l.rows = l.cfg.rows()
	l.readFile(b)
	l.resolver.dir = "" // relative paths in variables and flags are relative to the working directory
	l.readEnvironment()
	for _, o := range opts.Overrides {
		l.override(o)
	}
	l.expand()
	l.readKeysFile()
	for _, o := range l.cfg.Tools.OpenAPI {
		o.Path = absolute(l.cfg.dir, o.File)
	}
	l.checkWhole()
	if opts.Check != nil && len(l.problems) == 0 {
		for _, p := range opts.Check(l.cfg, filepath.Dir(path)) {
			l.at(p.Key, p.Message)
		}
	}
	slices.SortStableFunc(l.problems, func(a, b Problem) int { return l.rank(a) - l.rank(b) })
	if len(l.problems) > maxProblems {
		more := len(l.problems) - maxProblems
		l.problems = append(l.problems[:maxProblems], Problem{Message: fmt.Sprintf("and %d more", more)})
	}
	if len(l.problems) > 0 {
		return nil, lathe.CodeInvalidConfig.Wrap("config", l.problems)
	}
	for _, m := range l.cfg.Models {
		m.setDerived()
	}
	return l.cfg, nil
}

// rank returns the sort key of a problem: problems of the file by line, before all others.
func (l *loader) rank(p Problem) int {
	if p.File != l.file {
		return math.MaxInt
	}
	return p.Line
}

func (l *loader) problem(line int, key, format string, args ...any) {
	l.problems = append(l.problems, Problem{File: l.file, Line: line, Key: key, Message: fmt.Sprintf(format, args...)})
}

// setFromUser sets one value from text and resolves the references in it, which it refuses in values of other kinds.
func (l *loader) setFromUser(k *kind, v reflect.Value, text string) error {
	if k.ref == nil && !k.path && strings.Contains(text, "${") {
		return errors.New("references ${…} are read in keys, headers and addresses only")
	}
	return l.set(k, v, text)
}

// set sets one value from text and resolves the references in it. In values of other kinds, ${ is text.
func (l *loader) set(k *kind, v reflect.Value, text string) error {
	if err := k.set(v, text); err != nil || k.ref == nil || k.shape != scalar {
		return err
	}
	return l.resolver.resolve(v.Addr().Interface().(*Ref), k.ref)
}

// readEnvironment applies LATHE_… variables over the file. A name that is similar to a valid one is an error. Other names are ignored,
// because container platforms create variables with this prefix.
func (l *loader) readEnvironment() {
	rows := map[string]*row{}      // by name of the variable
	renamed := map[string]string{} // former name of a variable → its name
	var names []string
	for i := range l.rows {
		r := &l.rows[i]
		if r.kind.shape == table || r.kind.shape == group {
			continue
		}
		name := variable(r.path)
		names = append(names, name)
		rows[name] = r
		if r.was != "" {
			renamed[variable(r.was)] = name
		}
	}
	problem := func(name, msg string) { l.problems = append(l.problems, Problem{File: name, Message: msg}) }
	for _, name := range slices.Sorted(maps.Keys(l.resolver.env)) {
		if !strings.HasPrefix(name, "LATHE_") {
			continue
		}
		switch r := rows[name]; {
		case r != nil:
			if err := l.setFromUser(r.kind, r.v, l.resolver.env[name]); err != nil {
				problem(name, err.Error())
			}
			l.cfg.origin[r.path] = name
		case renamed[name] != "":
			problem(name, "unknown variable, it is called "+renamed[name]+" here")
		default:
			similar := slices.IndexFunc(names, func(right string) bool { return text.Distance(name, right) <= 2 })
			if similar >= 0 {
				problem(name, "unknown variable, did you mean "+names[similar]+"?")
			}
		}
	}
}

func variable(path string) string {
	return "LATHE_" + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
}

// rowsOfKey returns the rows among which the key of an override is, and its path there: those of a model, which it creates if necessary, or
// those of the configuration. base is the path of the rows, with a dot at its end.
func (l *loader) rowsOfKey(key string) (rows []row, base, path string) {
	const models = "models."
	ofModel, ok := strings.CutPrefix(key, models)
	name, path := splitModelKey(ofModel)
	if !ok || name == "" {
		return l.rows, "", key
	}
	return rowsOf(entry(reflect.ValueOf(&l.cfg.Models).Elem(), name)), models + name + ".", path
}

// splitModelKey splits NAME.PATH, either of which can contain dots: at a path that is one of the settings of a model, else at the last dot. name
// is "" if key contains no dot.
func splitModelKey(key string) (name, path string) {
	for _, s := range settingsOf(reflect.TypeFor[Model]()) {
		if name, ok := strings.CutSuffix(key, "."+s.path); ok {
			return name, s.path
		}
	}
	name = above(key)
	return name, strings.TrimPrefix(key, name+".")
}

// override sets the key of an override.
func (l *loader) override(o Override) {
	rows, base, path := l.rowsOfKey(o.Key)
	note := func(msg string) {
		l.problems = append(l.problems, Problem{File: o.From, Key: o.Key, Message: msg})
	}
	r := find(rows, path)
	switch {
	case o.Key == "models" || hasSection(rows, path):
		note("stands for several keys: set one of them")
	case r == nil:
		i := strings.LastIndexByte(path, '.') + 1
		note(l.unknownKey(rows, path[:i], path[i:]))
	default:
		if err := l.setFromUser(r.kind, r.v, o.Value); err != nil {
			note(err.Error())
		}
		l.cfg.origin[base+r.path] = o.From
	}
}

// checkWhole checks settings that depend on each other.
func (l *loader) checkWhole() {
	c := l.cfg
	l.checkServers()
	l.checkWorkers()
	l.checkCallers()
	l.checkCatalog()
	l.checkAgents()
	l.checkTemporal()
	l.checkPrices()
	l.checkBudgets()
	checkModel(l, "default_model", c.DefaultModel)
	if t := &c.Telemetry; t.ArgsPreviewHash == "keyed" {
		switch n := len(t.ArgsPreviewKey.Reveal()); {
		case n == 0:
			l.at("telemetry.args_preview_hash", "keyed needs telemetry.args_preview_key")
		case n < minHashKey:
			l.at("telemetry.args_preview_key", fmt.Sprintf("the key has %d bytes and can be guessed: want at least %d, such as those of `openssl rand -hex 32`", n, minHashKey))
		}
	}
	if tools := c.Tools.Builtin; l.opts.Tools != nil && !slices.Equal(tools, []string{"all"}) {
		for _, name := range tools {
			l.known("tools.builtin", "tool", name, l.opts.Tools)
		}
	}
	if l.opts.Dialects != nil {
		for name, m := range text.ByName(c.Models) {
			l.known("models."+name+".dialect", "dialect", m.Dialect, l.opts.Dialects)
		}
	}
}

// checkModel reports a name that no model has. "" is a default.
func checkModel(l *loader, key, name string) {
	if _, err := l.cfg.model(name); err != nil && name != "" {
		l.at(key, err.Error())
	}
}

// known reports a name that is not among the known ones.
func (l *loader) known(key, what, name string, known []string) {
	if slices.Contains(known, name) {
		return
	}
	msg := fmt.Sprintf("unknown %s %s", what, quote(name))
	if near := text.Nearest(name, known); near != "" {
		msg += ", did you mean " + quote(near) + "?"
	} else {
		msg += " (" + strings.Join(slices.Sorted(slices.Values(known)), ", ") + ")"
	}
	l.at(key, msg)
}

// wrong reports whether any key of an entry has a problem.
func (l *loader) wrong(entry string) bool {
	return slices.ContainsFunc(l.problems, func(p Problem) bool { return strings.HasPrefix(p.Key, entry+".") })
}

// at reports a problem at the position where the key was set: in the file, or by a variable or a flag. A key that is not set has the position of
// the entry that contains it.
func (l *loader) at(key, msg string) {
	from, line := l.cfg.origin[key], l.lines[key]
	if from == "" {
		for up := key; line == 0 && up != ""; up = above(up) {
			line = l.lines[up]
		}
	}
	isInFile := line > 0 && (from == "" || from == l.place(line))
	if isInFile {
		l.problem(line, key, "%s", msg)
		return
	}
	l.problems = append(l.problems, Problem{File: from, Key: key, Message: msg})
}

// above returns the key of the section or the entry that contains a key; "" for a key at the top.
func above(key string) string { return key[:max(strings.LastIndexByte(key, '.'), 0)] }

func (l *loader) place(line int) string { return fmt.Sprintf("%s:%d", l.file, line) }
