package connect

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// maxFile is the largest size of a configuration file in bytes.
const maxFile = 4 << 20

// backupSuffix is appended to the path of a file to name the backup of its previous content.
const backupSuffix = ".before-lathe"

// A Record lists the files that [Write] changed for an agent, for [Undo]. It is stored as a separate JSON file.
type Record struct {
	Files []Written `json:"files"`
}

// Written describes a file that was changed.
type Written struct {
	Path   string `json:"path"`
	Backup string `json:"backup,omitempty"` // "": the file did not exist
	SHA256 string `json:"sha256"`           // hash of the content that was written
	// Edited: another program changed the file between two writes. Such a file is not restored as a whole.
	Edited bool `json:"edited,omitempty"`
	// Puts are the written settings that Undo can remove from a file that has been changed since. Only JSON files have them.
	Puts []Put `json:"puts,omitempty"`
}

// A Change is the result of [Write] or [Undo] for one file.
type Change struct {
	Path    string `json:"path"`
	Backup  string `json:"backup,omitempty"`
	Changed bool   `json:"changed"`
	// Left are the settings that Undo did not remove, because their values have been changed since Write.
	Left []string `json:"left,omitempty"`
}

// ReadFile returns the content of a configuration file of at most 4 MiB; nil if the file does not exist.
func ReadFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxFile)
	}
	return text, err
}

// Plan returns the changes that Write would make, without backups. It changes nothing.
func Plan(files []File) ([]Change, error) {
	edits, err := merge(files)
	return changesOf(edits), err
}

// An edit is a change of a file, with the content before and after.
type edit struct {
	Change
	before, after []byte
}

// merge returns an edit for each file, even for unchanged ones. It writes nothing.
func merge(files []File) (edits []edit, err error) {
	for _, f := range files {
		path, err := resolve(f.Path)
		if err != nil {
			return nil, err
		}
		before, err := ReadFile(path)
		if err != nil {
			return nil, err
		}
		after, err := f.Format.Merge(before, f.Entries)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Path, err)
		}
		edits = append(edits, edit{Change{Path: path, Changed: !bytes.Equal(before, after)}, before, after})
	}
	return edits, nil
}

func changesOf(edits []edit) (changes []Change) {
	for _, e := range edits {
		changes = append(changes, e.Change)
	}
	return changes
}

// Write sets the entries of files. It reads and merges all files before it writes. It refuses a file that is read-only, is not a regular
// file, or is a link to a file that does not exist. record is the path of the [Record]. A later Write does not replace the backups of the
// first.
func Write(record string, files []File) ([]Change, error) {
	r, err := readRecord(record)
	if err != nil {
		return nil, err
	}
	edits, err := merge(files)
	if err != nil {
		return nil, err
	}
	for i := range edits {
		e := &edits[i]
		if !e.Changed {
			continue
		}
		w, err := r.written(e.Path, e.before)
		if err != nil {
			return nil, err
		}
		w.Edited = w.Edited || sum(e.before) != w.SHA256
		w.SHA256 = sum(e.after)
		if files[i].Format == JSON {
			puts, err := putsOf(e.before, files[i].Entries)
			if err != nil {
				return nil, err
			}
			w.add(puts)
		}
		e.Backup = w.Backup
	}
	if err := writeRecord(record, r); err != nil {
		return nil, err
	}
	for _, e := range edits {
		if e.Changed {
			if err := replace(e.Path, e.after); err != nil {
				return nil, err
			}
		}
	}
	return changesOf(edits), nil
}

// written returns the description of a file. If the record has none, it makes a backup of the content, unless that is nil, and adds one.
func (r *Record) written(path string, content []byte) (*Written, error) {
	for i := range r.Files {
		if r.Files[i].Path == path {
			return &r.Files[i], nil
		}
	}
	w := Written{Path: path, SHA256: sum(content)}
	if content != nil {
		var err error
		if w.Backup, err = backUp(path, content); err != nil {
			return nil, err
		}
	}
	r.Files = append(r.Files, w)
	return &r.Files[len(r.Files)-1], nil
}

// ErrNothingWritten is the error of [Undo] if the record does not exist.
var ErrNothingWritten = errors.New("nothing was written for this agent")

// Undo restores the files of a record and removes those that did not exist before. From a JSON file that the agent or its user has changed
// since, it removes only the written settings. If a file of another format has been changed, it returns an error and changes nothing. It
// removes the record, and the directory of the record if that is empty.
func Undo(record string) ([]Change, error) {
	r, err := readRecord(record)
	if err != nil {
		return nil, err
	}
	if len(r.Files) == 0 {
		return nil, ErrNothingWritten
	}
	edits := make([]edit, len(r.Files))
	for i := range r.Files {
		if edits[i], err = r.Files[i].former(); err != nil {
			return nil, err
		}
	}
	changes := changesOf(edits)
	for i, e := range edits {
		if err := e.restore(r.Files[i].Backup); err != nil {
			return changes[:i], err
		}
	}
	if err := os.Remove(record); err != nil {
		return changes, err
	}
	_ = os.Remove(filepath.Dir(record)) // fails if the directory contains other records
	return changes, nil
}

// restore writes the text after the edit, or removes the file if that text is nil. Then it removes the backup, unless the edit retains it.
func (e *edit) restore(backup string) (err error) {
	if e.after != nil {
		err = replace(e.Path, e.after)
	} else if err = os.Remove(e.Path); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err == nil && backup != "" && e.Backup == "" {
		err = os.Remove(backup)
	}
	return err
}

// former returns the edit that removes the written settings. Its text after the edit is nil if the file is to be removed, and its Backup is
// set if the backup is to be retained.
func (w *Written) former() (e edit, err error) {
	e.Path, e.Changed = w.Path, true
	now, err := ReadFile(w.Path)
	if err != nil {
		return e, err
	}
	advice := "it did not exist before"
	var before []byte
	if w.Backup != "" {
		advice = "its former content is in " + w.Backup
		if before, err = ReadFile(w.Backup); err == nil && before == nil {
			err = fmt.Errorf("the backup %s is not there", w.Backup)
		}
		if err != nil {
			return e, err
		}
	}
	asWritten := now != nil && !w.Edited && sum(now) == w.SHA256
	if asWritten || bytes.Equal(now, before) {
		e.after = before
		return e, nil
	}
	if now == nil || len(w.Puts) == 0 {
		return e, fmt.Errorf("%s was changed since it was written, and is left as it is: %s", w.Path, advice)
	}
	if e.after, e.Left, err = takeOut(before, now, w.Puts); err != nil {
		return e, fmt.Errorf("%s was changed since it was written, and is left as it is: %w; %s", w.Path, err, advice)
	}
	if len(e.Left) > 0 {
		e.Backup = w.Backup
	}
	return e, nil
}

func readRecord(path string) (*Record, error) {
	text, err := ReadFile(path)
	r := &Record{}
	if err != nil || text == nil {
		return r, err
	}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s, the record of what was written: %w", path, err)
	}
	return r, nil
}

func writeRecord(path string, r *Record) error {
	if len(r.Files) == 0 {
		return nil
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return replace(path, append(text, '\n'))
}

// ErrNotReplaced is the error of [Write] for a file whose previous state could not be restored.
var ErrNotReplaced = errors.New("it is not replaced")

// resolve follows symbolic links, so that the target is replaced instead of the link. It returns [ErrNotReplaced] for links without a
// target and for files that are read-only or not regular.
func resolve(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(path); err == nil {
			return "", fmt.Errorf("%s is a link to a file that does not exist: %w", path, ErrNotReplaced)
		}
		return path, nil
	}
	if err != nil {
		return "", err
	}
	info, err := os.Stat(real)
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is not a regular file: %w", path, ErrNotReplaced)
	case info.Mode().Perm()&0o200 == 0: // another program may manage the file, for example one for the home directory
		return "", fmt.Errorf("%s is read-only: %w", path, ErrNotReplaced)
	}
	return real, nil
}

// backUp writes the previous content to a new file next to path and returns the name of the new file.
func backUp(path string, text []byte) (string, error) {
	name := path + backupSuffix
	for n := 2; ; n++ {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) && n < 100 {
			name = fmt.Sprintf("%s.%d", path+backupSuffix, n)
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = f.Write(text)
		return name, errors.Join(err, f.Sync(), f.Close())
	}
}

// replace replaces the content of a file atomically. A new file gets mode 0600; the mode of an existing file does not change.
func replace(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".lathe-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(text)
	err = errors.Join(err, tmp.Chmod(mode), tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return nil
}

func sum(text []byte) string { return fmt.Sprintf("%x", sha256.Sum256(text)) }
