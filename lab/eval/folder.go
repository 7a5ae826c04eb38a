package eval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lathe-run/lathe/internal/lazy"
	"github.com/lathe-run/lathe/internal/report"
)

// A folder of results has one file for each run, MODEL__SCENARIO__trial_NN.json, and the files that are computed from all runs:
// summary.json, junit.xml and report.html.

// maxRunBytes is the largest size of the file of a run.
const maxRunBytes = 64 << 20

var unsafeInNames = lazy.Regexp(`[^A-Za-z0-9._-]+`)

// fileName returns a file name that every file system allows: characters other than letters, digits, . _ and - become __.
func fileName(s string) string {
	s = unsafeInNames().ReplaceAllString(s, "__")
	return strings.TrimLeft(s, ".")
}

// writeFile writes a file atomically: it is complete, or does not change.
func writeFile(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".part-*")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // err is more useful than an error of Remove
	}
	return err
}

func (b *bench) path(j *job) string { return filepath.Join(b.opts.Dir, j.name+".json") }

// stored returns the stored result of a run, or of an earlier attempt at it; nil: none.
func (b *bench) stored(j *job) *Run {
	if b.opts.Dir == "" {
		return nil
	}
	r, _ := readRun(b.path(j)) // after an error, the run must be made
	return r
}

// kept reports whether the result of a run is final. Such a run is never repeated: a rate must not depend on how often an evaluation is resumed.
func kept(r *Run) bool { return r.Scored || r.Class == ClassNotProvoked }

// checkOverwrite returns an error if the run would overwrite results: any at all without Options.Resume; with it, final ones of the same
// name that come from another model, scenario or configuration.
func (b *bench) checkOverwrite(jobs []*job) error {
	if b.opts.Dir == "" {
		return nil
	}
	if !b.opts.Resume {
		if name := firstResult(b.opts.Dir); name != "" {
			return fmt.Errorf("%s holds results, such as %s: %w", b.opts.Dir, name, ErrNotEmpty)
		}
	}
	for _, j := range jobs {
		r, err := readRun(b.path(j))
		if err == nil && kept(r) && r.Fingerprint != j.run.Fingerprint {
			return fmt.Errorf("%s holds a result of another model server, configuration or scenario under this name: choose another folder", b.path(j))
		}
	}
	return nil
}

func (b *bench) save(j *job, r *Run) error {
	if b.opts.Dir == "" {
		return nil
	}
	return saveJSON(b.path(j), r)
}

func saveJSON(path string, v any) error {
	var raw bytes.Buffer
	if err := report.WriteJSON(&raw, v); err != nil {
		return err
	}
	return writeFile(path, raw.Bytes())
}

// ErrNotEmpty is the error of [Measure] if Options.Dir already has results and Options.Resume is false.
var ErrNotEmpty = errors.New("name another folder, or resume them")

// firstResult returns the name of the file of a run in the folder, or "" if none exists.
func firstResult(dir string) string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "" // the folder will be created, or writing to it fails
	}
	for _, e := range entries {
		if isResult(e) {
			return e.Name()
		}
	}
	return ""
}

func isResult(e fs.DirEntry) bool {
	return e.Type().IsRegular() && strings.Contains(e.Name(), "__trial_") && filepath.Ext(e.Name()) == ".json"
}

// readAtMost reads a file of at most limit bytes.
func readAtMost(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("%s: larger than %d bytes", path, limit)
	}
	return os.ReadFile(path)
}

func readRun(path string) (*Run, error) {
	b, err := readAtMost(path, maxRunBytes)
	if err != nil {
		return nil, err
	}
	r := &Run{}
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if !r.OK {
		r.Scored = r.Class.Scored() && (r.Scored || r.Class != ClassTimeout) // earlier versions had fewer classes
	}
	if r.Model == "" || r.Scenario == "" || r.Fingerprint == "" {
		return nil, fmt.Errorf("%s: not the file of a run", path)
	}
	return r, nil
}

// Load reads the files of runs in a folder (MODEL__SCENARIO__trial_NN.json; other files are ignored), sorted by model and then by file name. It
// returns the error of the first file that cannot be read, and an error that wraps [fs.ErrNotExist] if the folder has no such file. Suite and
// Skipped of the report are not set.
func Load(dir string) (*Report, error) {
	rep := &Report{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !isResult(e) {
			continue
		}
		r, err := readRun(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		rep.Runs = append(rep.Runs, r)
	}
	if len(rep.Runs) == 0 {
		return nil, fmt.Errorf("%s: %w: no file of a run", dir, fs.ErrNotExist)
	}
	slices.SortStableFunc(rep.Runs, func(a, b *Run) int { return strings.Compare(a.Model, b.Model) })
	return rep, nil
}

// Save writes summary.json, junit.xml and report.html into dir, which must exist, and replaces existing ones. The error joins those of the
// files; the other files are written all the same.
func (rep *Report) Save(dir string) error {
	var summary, junit, page bytes.Buffer
	if err := errors.Join(report.WriteJSON(&summary, rep.Summary()), rep.WriteJUnit(&junit), rep.WriteHTML(&page)); err != nil {
		return err
	}
	return errors.Join(
		writeFile(filepath.Join(dir, "summary.json"), summary.Bytes()),
		writeFile(filepath.Join(dir, "junit.xml"), junit.Bytes()),
		writeFile(filepath.Join(dir, "report.html"), page.Bytes()))
}
