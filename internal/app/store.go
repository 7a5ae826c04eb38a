package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/store/postgres"
	"github.com/lathe-run/lathe/store/sqlite"
)

// A Store stores runs: in a file, in a database that several processes share, or in memory. One that can be shared also implements
// [store.Shared].
type Store interface {
	store.Retainer
	store.Compactor
	store.SignalStore
	Close() error
}

// A memoryStore stores runs in memory until the process ends. It hides that [store.Memory] is a [store.Shared], because no other process
// shares it.
type memoryStore struct{ memoryInterfaces }

type memoryInterfaces interface {
	store.Retainer
	store.Compactor
	store.SignalStore
	store.RequestStore
	store.ValueKeeper
	store.Ledger
}

// Close does nothing: the runs are removed at the end of the process.
func (memoryStore) Close() error { return nil }

// Limits of the memory store. The runs that ended first are removed first, and no key uses more than one memoryShare-th of the space.
const (
	maxMemoryRuns     = 10_000
	maxMemoryFinished = 256
	maxMemoryBytes    = 64 << 20
	memoryShare       = 4
)

// NewMemoryStore returns a store that keeps at most 256 ended runs and 64 MiB of all runs in memory.
func NewMemoryStore() Store {
	return memoryStore{store.NewMemory(&store.MemoryOptions{MaxRuns: maxMemoryRuns, MaxFinished: maxMemoryFinished, MaxBytes: maxMemoryBytes, Share: memoryShare})}
}

// Tightened returns the paths of store files from which opening has removed permissions of other users.
func Tightened(s Store) []string {
	if t, ok := s.(interface{ Tightened() []string }); ok {
		return t.Tightened()
	}
	return nil
}

// ParseStoreName splits a name such as sqlite:PATH or postgres://HOST/DATABASE into kind and path or URL. Errors name from, the setting
// that has the name, such as serve.store.
func ParseStoreName(name, from string) (kind, path string, err error) {
	kind, path, _ = strings.Cut(name, ":")
	switch {
	case kind == "sqlite" && path != "":
		return kind, strings.TrimPrefix(path, "//"), nil
	case kind == "postgres", kind == "postgresql":
		return "postgres", name, nil
	}
	return "", "", invalidRequest("%s %q: want sqlite:PATH or postgres://USER@HOST/DATABASE", from, ShownStoreName(name))
}

// StoreOptions are the options of [OpenStore]. The zero value is usable.
type StoreOptions struct {
	ReadOnly bool
	// From is the setting that errors name; "": serve.store.
	From string
}

// OpenStore opens a store by its name: sqlite:PATH, or postgres://USER@HOST/DATABASE. It returns a *[LockedError] if another process has
// the file open. The caller must call Close.
func OpenStore(name string, opts *StoreOptions) (Store, error) {
	if opts == nil {
		opts = &StoreOptions{}
	}
	kind, path, err := ParseStoreName(name, cmp.Or(opts.From, "serve.store"))
	if err != nil {
		return nil, err
	}
	if kind == "sqlite" {
		if _, err := os.Stat(path); opts.ReadOnly && errors.Is(err, fs.ErrNotExist) {
			return nil, failed(fmt.Errorf("there is no store %s: `lathe run --store sqlite:%s …` and `lathe serve` with it make one", path, path))
		}
		s, err := sqlite.Open(path, &sqlite.Options{ReadOnly: opts.ReadOnly})
		if lathe.CodeOf(err) == lathe.CodeConflict {
			return nil, failed(&LockedError{path, Cause(err)})
		}
		if err != nil {
			return nil, failed(fmt.Errorf("the store %s: %w", path, Cause(err)))
		}
		return s, nil
	}
	s, err := postgres.Open(context.Background(), path, nil)
	var unreached *net.OpError
	if errors.As(err, &unreached) { // the text of err repeats it for each address, with user and database
		return nil, failed(fmt.Errorf("the store %s cannot be reached: %w; is PostgreSQL running there, and are host and port right?", ShownStoreName(name), unreached))
	}
	if err != nil {
		return nil, failed(fmt.Errorf("the store %s: %w", ShownStoreName(name), Cause(err)))
	}
	return s, nil
}

// A LockedError says that another process has the file of the store open.
type LockedError struct {
	Path string
	Err  error
}

// Error returns the path and the cause.
func (e *LockedError) Error() string { return fmt.Sprintf("the store %s: %s", e.Path, e.Err) }

// Unwrap returns the cause.
func (e *LockedError) Unwrap() error { return e.Err }

// checkStore returns an error for a value of serve.store that is not the name of a store.
func checkStore(name string) error {
	if name == "" || name == "memory" || name == "none" {
		return nil
	}
	if _, _, err := ParseStoreName(name, "serve.store"); err != nil {
		return configError(Cause(err))
	}
	return nil
}

// ShownStoreName returns the name of a store without user, password and parameters, for messages.
func ShownStoreName(name string) string {
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
