package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/server"
)

// Limits of the files that one request reads from the folder of evaluation results.
const (
	maxEvalEntries = 2_000     // names in a folder
	maxEvalFile    = 16 << 20  // bytes of one file
	maxEvalBytes   = 128 << 20 // bytes of all files
)

// evalFolder serves the results of `lathe eval` in a folder. Each result is a subfolder with a summary.json; the name of the subfolder is
// its id. Only regular files inside the folder are read: [os.Root] refuses others, whatever ids and symbolic links there are.
type evalFolder struct{ dir string }

const opEvals = "app: read evaluation results"

func evalNotFound(err error) error {
	return lathe.CodeNotFound.Wrap(opEvals, err)
}

// An evalReader reads files of the folder within the limits. left is the number of bytes that it may still read.
type evalReader struct {
	root *os.Root
	left int64
}

var errEvalLimit = errors.New("the file is too large")

func (f evalFolder) open() (*evalReader, error) {
	root, err := os.OpenRoot(f.dir)
	if errors.Is(err, fs.ErrNotExist) { // no evaluation has written a result yet
		return nil, evalNotFound(err)
	}
	if err != nil {
		return nil, lathe.CodeUnavailable.Wrap(opEvals, err)
	}
	return &evalReader{root, maxEvalBytes}, nil
}

func (r *evalReader) close() { _ = r.root.Close() }

// names returns the sorted names in a folder. more reports whether there are more than maxEvalEntries.
func (r *evalReader) names(dir string) (names []string, more bool, err error) {
	d, err := r.root.Open(dir)
	if err != nil {
		return nil, false, err
	}
	defer d.Close()
	names, err = d.Readdirnames(maxEvalEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	if more = len(names) > maxEvalEntries; more {
		names = names[:maxEvalEntries]
	}
	slices.Sort(names)
	return names, more, nil
}

// file reads a regular file. It returns errEvalLimit if the file exceeds a limit.
func (r *evalReader) file(name string) ([]byte, error) {
	info, err := r.root.Lstat(name) // before the file is opened: opening a pipe would block
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fs.ErrNotExist
	}
	if info.Size() > min(r.left, maxEvalFile) {
		return nil, errEvalLimit
	}
	f, err := r.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxEvalFile))
	r.left -= int64(len(b))
	return b, err
}

// evalName reports whether s can be the name of a result or of a run.
func evalName(s string) bool {
	return s != "" && len(s) <= 255 && s[0] != '.' && !strings.ContainsAny(s, `/\`+"\x00")
}

// An evalSummary has the members of summary.json that a list of results contains.
type evalSummary struct {
	Suite    string                        `json:"suite"`
	Status   string                        `json:"status"`
	Measured []struct{ Started time.Time } `json:"measured"`
	Models   []server.EvalModel            `json:"models"`
}

// row returns the row of a result in a list, and the bytes of its summary.
func (r *evalReader) row(id string) (row server.EvalRow, raw []byte, err error) {
	row.ID = id
	if raw, err = r.file(path.Join(id, "summary.json")); err != nil {
		return row, nil, err
	}
	var s evalSummary
	if json.Unmarshal(raw, &s) != nil { // the row contains the problem
		row.Problem = "summary.json is not the summary of an evaluation"
		return row, nil, nil //nolint:nilerr // the problem is in the row
	}
	row.Suite, row.Status, row.Models = s.Suite, s.Status, s.Models
	for _, m := range s.Measured {
		if row.Started.IsZero() || m.Started.Before(row.Started) {
			row.Started = m.Started
		}
	}
	return row, raw, nil
}

// List implements [server.Evals].
func (f evalFolder) List(ctx context.Context) (rows []server.EvalRow, truncated bool, err error) {
	r, err := f.open()
	if errors.Is(err, fs.ErrNotExist) {
		return []server.EvalRow{}, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer r.close()
	names, truncated, err := r.names(".")
	if err != nil {
		return nil, false, err
	}
	for _, id := range names {
		if ctx.Err() != nil {
			return nil, false, ctx.Err()
		}
		if !evalName(id) {
			continue
		}
		row, _, err := r.row(id)
		switch {
		case errors.Is(err, errEvalLimit) && r.left < maxEvalFile:
			truncated = true
			continue
		case errors.Is(err, errEvalLimit):
			row.Problem = "summary.json is larger than 16 MiB"
		case err != nil: // not the folder of a result
			continue
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b server.EvalRow) int {
		return cmp.Or(b.Started.Compare(a.Started), strings.Compare(b.ID, a.ID))
	})
	return rows, truncated, nil
}

// Show implements [server.Evals].
func (f evalFolder) Show(ctx context.Context, id string) (*server.EvalResult, error) {
	if !evalName(id) {
		return nil, evalNotFound(fs.ErrNotExist)
	}
	r, err := f.open()
	if err != nil {
		return nil, err
	}
	defer r.close()
	row, raw, err := r.row(id)
	if err != nil {
		return nil, evalNotFound(err)
	}
	out := &server.EvalResult{EvalRow: row, Summary: json.RawMessage(raw)}
	if raw == nil {
		out.Summary = json.RawMessage("null")
		return out, nil
	}
	names, more, err := r.names(id)
	if err != nil {
		return nil, err
	}
	out.Truncated = more
	for _, name := range names {
		stem, ok := strings.CutSuffix(name, ".json")
		if !ok || !strings.Contains(stem, "__trial_") || !evalName(stem) {
			continue
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		b, err := r.file(path.Join(id, name))
		var run server.EvalRun
		switch {
		case errors.Is(err, errEvalLimit):
			out.Truncated = true
			continue
		case err != nil:
			continue
		case json.Unmarshal(b, &run) != nil || run.Model == "" || run.Scenario == "":
			continue // the file does not describe a run
		}
		run.Name = stem
		out.Runs = append(out.Runs, run)
	}
	return out, nil
}

// Run implements [server.Evals].
func (f evalFolder) Run(_ context.Context, id, name string) (json.RawMessage, error) {
	if !evalName(id) || !evalName(name) || !strings.Contains(name, "__trial_") {
		return nil, evalNotFound(fs.ErrNotExist)
	}
	r, err := f.open()
	if err != nil {
		return nil, err
	}
	defer r.close()
	b, err := r.file(path.Join(id, name+".json"))
	if err != nil || !json.Valid(b) {
		return nil, evalNotFound(errors.Join(err, fs.ErrNotExist))
	}
	return b, nil
}
