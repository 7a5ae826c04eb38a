package bfcl

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"path"
	"slices"

	"github.com/lathe-run/lathe/internal/lazy"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// Limits of the files that are read.
const (
	MaxLineBytes   = 4 << 20  // maximum size of one line of a file
	maxAnswerBytes = 64 << 20 // all answers of one category
)

// ErrNoCategory is wrapped by errors for a category that has no file in the data.
var ErrNoCategory = errors.New("no such category in the data")

// fileName matches the name of a file of questions or answers. A part after the category names a subset of the entries, if the file
// contains only that.
var fileName = lazy.Regexp(`^BFCL_v[0-9]+_([a-z_]+)(\.[^.]+)?\.json$`)

// answerDir and classDir are the folders of the answers and of the functions of classes.
const (
	answerDir = "possible_answer"
	classDir  = "multi_turn_func_doc"
)

// classFiles are the files with the functions of each class, for the multi-turn categories.
var classFiles = map[string]string{
	"GorillaFileSystem": "gorilla_file_system.json", "MathAPI": "math_api.json", "MessageAPI": "message_api.json",
	"TwitterAPI": "posting_api.json", "TicketAPI": "ticket_api.json", "TradingBot": "trading_bot.json",
	"TravelAPI": "travel_booking.json", "VehicleControlAPI": "vehicle_control.json",
}

// Categories returns the names of the categories that have a question file in fsys, sorted.
func Categories(fsys fs.FS) ([]string, error) {
	files, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, err
	}
	var out []string
	for _, f := range files {
		if m := fileName().FindStringSubmatch(f.Name()); m != nil && !f.IsDir() {
			out = append(out, m[1])
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// Suite yields the cases of a category in file order. An error is yielded last, with a nil case; it wraps [ErrNoCategory] if there is no
// file.
func Suite(fsys fs.FS, category string) iter.Seq2[*Case, error] {
	return func(yield func(*Case, error) bool) {
		if err := eachCase(fsys, category, func(c *Case) bool { return yield(c, nil) }); err != nil {
			yield(nil, fmt.Errorf("bfcl: %s: %w", category, err))
		}
	}
}

func eachCase(fsys fs.FS, name string, yield func(*Case) bool) error {
	file, err := findFile(fsys, ".", name)
	if err != nil {
		return err
	}
	var answers map[string][]byte
	if readCategory(name).hasAnswers() {
		if answers, err = readAnswers(fsys, name); err != nil {
			return err
		}
	}
	classes := map[string][]json.RawMessage{}
	return eachLine(fsys, file, func(line []byte) error {
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return errors.New("an entry is not of the form it should have")
		}
		var functions []json.RawMessage
		for _, class := range e.Classes {
			if classes[class] == nil {
				if classes[class], err = readClass(fsys, class); err != nil {
					return err
				}
			}
			functions = append(functions, classes[class]...)
		}
		c, err := newCase(name, &e, functions, answers[e.ID])
		if err == nil && !yield(c) {
			return errStop
		}
		return err
	})
}

// findFile returns the path of the file of a category in a folder. Several files are an error.
func findFile(fsys fs.FS, dir, category string) (string, error) {
	files, err := fs.ReadDir(fsys, dir)
	if err != nil {
		return "", err
	}
	found := ""
	for _, f := range files {
		m := fileName().FindStringSubmatch(f.Name())
		if m == nil || m[1] != category || f.IsDir() {
			continue
		}
		if found != "" {
			return "", fmt.Errorf("both %s and %s hold that category", found, f.Name())
		}
		found = f.Name()
	}
	if found == "" {
		return "", ErrNoCategory
	}
	return path.Join(dir, found), nil
}

// readAnswers returns the lines of the file of answers by id; nil if there is no file.
func readAnswers(fsys fs.FS, category string) (map[string][]byte, error) {
	file, err := findFile(fsys, answerDir, category)
	if errors.Is(err, ErrNoCategory) || errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	size := 0
	err = eachLine(fsys, file, func(line []byte) error {
		var of struct {
			ID string `json:"id"`
		}
		if err := json.Unmarshal(line, &of); err != nil {
			return errors.New("an entry is not of the form it should have")
		}
		if size += len(line); size > maxAnswerBytes {
			return fmt.Errorf("larger than %d bytes", maxAnswerBytes)
		}
		out[of.ID] = bytes.Clone(line)
		return nil
	})
	return out, err
}

func readClass(fsys fs.FS, class string) ([]json.RawMessage, error) {
	name, ok := classFiles[class]
	if !ok {
		return nil, errors.New("an entry names a class that is not known")
	}
	out := []json.RawMessage{}
	err := eachLine(fsys, path.Join(classDir, name), func(line []byte) error {
		out = append(out, bytes.Clone(line))
		return nil
	})
	return out, err
}

// errStop is what the function of eachLine returns to end it without an error.
var errStop = errors.New("stop")

// eachLine calls fn with each line of a file, except blank ones, until fn returns an error. The line is a valid JSON object, and its memory
// may be used only until fn returns.
func eachLine(fsys fs.FS, name string, fn func(line []byte) error) error {
	f, err := fsys.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // the file was only read
	if err := eachObject(f, fn); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// eachObject is eachLine for a reader.
func eachObject(r io.Reader, fn func(line []byte) error) error {
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, MaxLineBytes)
	for n := 1; sc.Scan(); n++ {
		line := bytes.TrimSpace(sc.Bytes())
		if len(line) == 0 {
			continue
		}
		err := rawjson.Check(line, rawjson.Limits{})
		if err == nil && line[0] != '{' {
			err = errors.New("want one JSON object")
		}
		if err == nil {
			err = fn(line)
		}
		switch {
		case errors.Is(err, errStop):
			return nil
		case err != nil:
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	return sc.Err()
}
