package daemon

import (
	"encoding/json"
	"net"
	"os"

	"github.com/lathe-run/lathe/internal/app"
)

// A daemon that has the file of a store open keeps other processes from writing it. It leaves its address in a file
// beside that of the store, readable by its user alone, so that `lathe runs` asks it.

// A Note is what the file says.
type Note struct {
	URL string `json:"url"`
	PID int    `json:"pid"`
}

// What a client needs to find and read the note.
const (
	NoteSuffix = ".server" // of the file, after the path of the store
	MaxNote    = 4 << 10   // bytes of it
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
	path += NoteSuffix
	b, err := json.Marshal(&Note{URL: "http://" + reachable(ln), PID: os.Getpid()})
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
