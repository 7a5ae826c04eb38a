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

// How `lathe runs` finds a gateway by its store.
//
// A gateway that has opened the file of a store prevents other processes from writing to it. The gateway writes its address to a file next to
// the store, which only its user can read, so that `lathe runs` can send its requests to the gateway.

// noted returns a client for the gateway that has opened the store, according to the note in the file next to the store.
func (f *serverFlags) noted(store string) (*daemonClient, error) {
	file, err := os.Open(store + daemon.NoteSuffix)
	if err != nil {
		return nil, err
	}
	defer file.Close()
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

// storeOrDaemon calls local to work on the runs of a store, or remote to work on them through a gateway: if a gateway is named, if a gateway
// has the store open, or if neither a gateway nor a store is named.
func (f *serverFlags) storeOrDaemon(cmd *cobra.Command, store string, local func() error, remote func(*daemonClient) error) error {
	name, _ := lastingStore(store)
	c, err := f.clientIfNamed(store)
	if err == nil && c == nil && name == "" {
		c, err = f.defaultClient()
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
	cmd.PrintErrf("note: the gateway at %s has the store open: asking it\n", c.base)
	return remote(c)
}
