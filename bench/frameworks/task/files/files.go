// Package files keeps values as files in JSON. The programs whose library has no list of what waits, or no store for files, use it: its
// lines are counted with theirs.
package files

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
)

// A Folder holds values of one type by name.
type Folder[T any] string

// Put stores a value. It replaces the file as a whole, so that a killed process leaves the old value or the new one.
func (f Folder[T]) Put(name string, value T) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return err
	}
	path := filepath.Join(string(f), name+".json")
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// Get returns a value; if no value has the name, the error is os.ErrNotExist.
func (f Folder[T]) Get(name string) (value T, err error) {
	data, err := os.ReadFile(filepath.Join(string(f), name+".json"))
	if err != nil {
		return value, err
	}
	return value, json.Unmarshal(data, &value)
}

// All returns the values by name.
func (f Folder[T]) All() (map[string]T, error) {
	paths, err := filepath.Glob(filepath.Join(string(f), "*.json"))
	if err != nil {
		return nil, err
	}
	all := map[string]T{}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		if all[name], err = f.Get(name); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Delete removes a value.
func (f Folder[T]) Delete(name string) error {
	return os.Remove(filepath.Join(string(f), name+".json"))
}
