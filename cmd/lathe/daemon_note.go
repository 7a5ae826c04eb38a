package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"

	"github.com/lathe-run/lathe/app"
	"github.com/spf13/cobra"
)

// A daemon that has the file of a store open keeps other processes from writing it. It leaves its address in a file
// beside that of the store, readable by its user alone, so that `lathe runs` asks it.

// A daemonNote is what the file says.
type daemonNote struct {
	URL string `json:"url"`
	PID int    `json:"pid"`
}

const (
	daemonNoteSuffix = ".server"
	maxDaemonNote    = 4 << 10
)

// leaveNote writes the address at which the daemon with this store listens, and returns what removes it. A store that
// is no file has none.
//
// A daemon with serve.tls leaves none: its certificate is for a name that only its callers know.
func (d *daemon) leaveNote(store, from string, ln net.Addr) (remove func(), err error) {
	if d.app.TLS() {
		return func() {}, nil
	}
	kind, path, err := app.ParseStoreName(store, from)
	if err != nil || kind != "sqlite" {
		return func() {}, nil //nolint:nilerr // memory and none are no files
	}
	path += daemonNoteSuffix
	b, err := json.Marshal(&daemonNote{URL: "http://" + reachable(ln), PID: os.Getpid()})
	if err != nil {
		return nil, err
	}
	_ = os.Remove(path) // of a daemon that was killed; its permissions may be others
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if _, err = f.Write(append(b, '\n')); err != nil {
		_ = f.Close()
		return nil, err
	}
	return func() { _ = os.Remove(path) }, f.Close()
}

// reachable returns an address of this machine for one that a listener has.
func reachable(a net.Addr) string {
	t, ok := a.(*net.TCPAddr)
	if !ok || !t.IP.IsUnspecified() {
		return a.String()
	}
	own := *t
	if own.IP = net.IPv4(127, 0, 0, 1); t.IP.To4() == nil {
		own.IP = net.IPv6loopback
	}
	return own.String()
}

// noted returns the client of the daemon that has the file of the store open, as its note says.
func (f *serverFlags) noted(store string) (*daemonClient, error) {
	file, err := os.Open(store + daemonNoteSuffix)
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
	b, err := io.ReadAll(io.LimitReader(file, maxDaemonNote))
	if err != nil {
		return nil, err
	}
	var n daemonNote
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
		return &exitError{exitFailed, fmt.Errorf("%w; if it is lathe serve, name its address: %s --server URL (%w)", locked, cmd.CommandPath(), err)}
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "note: the daemon at %s has the store open: asking it\n", c.base)
	return remote(c)
}
