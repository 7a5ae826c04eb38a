package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/daemon"
	"github.com/spf13/cobra"
)

// A daemon that has the file of a store open keeps other processes from writing it. It leaves its address in a file
// beside that of the store, readable by its user alone, so that `lathe runs` asks it.

// noted returns the client of the daemon that has the file of the store open, as its note says.
func (f *serverFlags) noted(store string) (*daemonClient, error) {
	file, err := os.Open(store + daemon.NoteSuffix)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was read
	info, err := file.Stat()
	if err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		err = errors.New("others than its user may read or write it")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file.Name(), err)
	}
	b, err := io.ReadAll(io.LimitReader(file, daemon.MaxNote))
	if err != nil {
		return nil, err
	}
	var n daemon.Note
	if err := json.Unmarshal(b, &n); err != nil {
		return nil, fmt.Errorf("%s: %w", file.Name(), err)
	}
	return f.client(n.URL)
}

// storeOrDaemon does something with the runs of a store: locally, or where a daemon is named or has the store open, or
// nothing is named, through that daemon.
func (f *serverFlags) storeOrDaemon(cmd *cobra.Command, store string, local func() error, remote func(*daemonClient) error) error {
	c, err := f.named(store)
	if name, _ := namedStore(store, ""); err == nil && c == nil && (name == "" || store == "" && (name == "memory" || name == "none")) {
		c, err = f.usual(cmd)
	}
	if err != nil {
		return err
	}
	if c != nil {
		return remote(c)
	}
	err = local()
	var locked *app.LockedError
	if !errors.As(err, &locked) {
		return err
	}
	if c, err = f.noted(locked.Path); err != nil {
		return failure("%w; if it is lathe serve, name its address: %s --server URL (%w)", locked, cmd.CommandPath(), err)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "note: the daemon at %s has the store open: asking it\n", c.base)
	return remote(c)
}
