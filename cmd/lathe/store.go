package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/store/postgres"
	"github.com/lathe-run/lathe/store/sqlite"
)

// storeVariable names the store where no flag does.
const storeVariable = "LATHE_STORE"

// A runStore keeps runs: a file, or a database that several processes use.
type runStore interface {
	lathe.Retainer
	lathe.Compactor
	lathe.FactStore
	Close() error
}

var (
	_ runStore = (*sqlite.Store)(nil)
	_ runStore = (*postgres.Store)(nil)
)

// A memoryStore keeps runs until the daemon ends. It is no [lathe.SharedStore]: no other process has a part in it.
type memoryStore struct{ retainedFacts }

type retainedFacts interface {
	lathe.Retainer
	lathe.Compactor
	lathe.FactStore
	lathe.RequestStore
}

// Close does nothing: the runs end with the process.
func (memoryStore) Close() error { return nil }

// What a daemon keeps in memory: the runs that ended first make room for others, and no key has more than
// its share.
const (
	maxMemoryRuns     = 10_000
	maxMemoryFinished = 256
	maxMemoryBytes    = 64 << 20
	memoryShare       = 4
)

func newMemoryStore() runStore {
	return memoryStore{store.NewMemory(&store.MemoryOptions{MaxRuns: maxMemoryRuns, MaxFinished: maxMemoryFinished, MaxBytes: maxMemoryBytes, Share: memoryShare})}
}

// storeFlag adds --store.
func storeFlag(cmd *cobra.Command, name *string) {
	cmd.Flags().StringVar(name, "store", "", "keep runs in a `store`: sqlite:PATH or postgres://USER@HOST/DATABASE (default $"+storeVariable+")")
}

// openStore opens the store of that name, else of the environment; nil where neither names one that outlives a
// process.
func openStore(name string, readOnly bool) (runStore, error) {
	name, from := namedStore(name, "")
	if name == "" || from == storeVariable && (name == "memory" || name == "none") {
		return nil, nil
	}
	s, err := openNamed(name, from, readOnly)
	for _, path := range tightened(s) {
		fmt.Fprintf(os.Stderr, "note: others than its owner could open %s: they cannot any more\n", path)
	}
	return s, err
}

// tightened returns the files that others could open until the store was opened.
func tightened(s runStore) []string {
	if t, ok := s.(interface{ Tightened() []string }); ok {
		return t.Tightened()
	}
	return nil
}

// openDaemonStore opens the store of a flag, of the environment, or of the configuration; nil where runs are not
// to be kept.
func openDaemonStore(flag, configured string) (runStore, error) {
	switch name, from := namedStore(flag, configured); name {
	case "none":
		return nil, nil
	case "", "memory":
		return newMemoryStore(), nil
	default:
		return openNamed(name, from, false)
	}
}

// namedStore is the name of the store, and what names it.
func namedStore(flag, configured string) (name, from string) {
	if flag != "" {
		return flag, "--store"
	}
	if name := os.Getenv(storeVariable); name != "" {
		return name, storeVariable
	}
	return configured, "serve.store"
}

// storeKind splits the name of a store that outlives a process. from names the flag, variable or key that has it.
func storeKind(name, from string) (kind, path string, err error) {
	kind, path, _ = strings.Cut(name, ":")
	switch {
	case kind == "sqlite" && path != "":
		return kind, strings.TrimPrefix(path, "//"), nil
	case kind == "postgres", kind == "postgresql":
		return "postgres", name, nil
	}
	return "", "", usageError("%s %q: want sqlite:PATH or postgres://USER@HOST/DATABASE", from, shownStore(name))
}

func openNamed(name, from string, readOnly bool) (runStore, error) {
	kind, path, err := storeKind(name, from)
	if err != nil {
		return nil, err
	}
	if kind == "sqlite" {
		if _, err := os.Stat(path); readOnly && errors.Is(err, fs.ErrNotExist) {
			return nil, &exitError{exitFailed, fmt.Errorf("there is no store %s: `lathe run --store sqlite:%s …` and `lathe serve` with it make one", path, path)}
		}
		s, err := sqlite.Open(path, &sqlite.Options{ReadOnly: readOnly})
		if lathe.CodeOf(err) == lathe.CodeConflict {
			return nil, &exitError{exitFailed, &lockedError{path, causeOf(err)}}
		}
		if err != nil {
			return nil, &exitError{exitFailed, fmt.Errorf("the store %s: %w", path, causeOf(err))}
		}
		return s, nil
	}
	s, err := postgres.Open(context.Background(), path, nil)
	if err != nil {
		return nil, &exitError{exitFailed, fmt.Errorf("the store %s: %w", shownStore(name), causeOf(err))}
	}
	return s, nil
}

// A lockedError says that another process has the file of a store open.
type lockedError struct {
	path string
	err  error
}

// Error implements error.
func (e *lockedError) Error() string { return fmt.Sprintf("the store %s: %s", e.path, e.err) }

// checkStore refuses a name in serve.store that no store can be opened under.
func checkStore(name string) error {
	if name == "" || name == "memory" || name == "none" {
		return nil
	}
	if _, _, err := storeKind(name, "serve.store"); err != nil {
		return &exitError{exitConfig, err}
	}
	return nil
}

// shownStore returns the name of a store without what may be a password.
func shownStore(name string) string {
	if !strings.Contains(name, "@") && !strings.Contains(name, "?") {
		return name
	}
	u, err := url.Parse(name)
	if err != nil || u.Host == "" {
		kind, _, _ := strings.Cut(name, ":")
		return kind + ":…"
	}
	return u.Scheme + "://" + u.Host + u.Path
}

// needStore is openStore for commands that are of no use without one.
func needStore(name string, readOnly bool) (runStore, error) {
	s, err := openStore(name, readOnly)
	if err == nil && s == nil {
		err = usageError("which store? give --store sqlite:PATH or postgres://USER@HOST/DATABASE, or set %s", storeVariable)
	}
	return s, err
}
