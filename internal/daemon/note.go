package daemon

import (
	"encoding/json"
	"errors"
	"net"
	"os"

	"github.com/lathe-run/lathe/internal/app"
)

// A gateway that has opened the file of a store prevents other processes from writing to it. The gateway writes its address to a file next to
// the store, which only its user can read, so that `lathe runs` can send its requests to the gateway.

// A Note is the content of the file with the address of the gateway.
type Note struct {
	URL string `json:"url"`
	PID int    `json:"pid"`
}

// Name and size of the note, for clients.
const (
	NoteSuffix = ".server" // appended to the path of the store
	MaxNote    = 4 << 10   // bytes
)

// leaveNote writes a note with the address at which the gateway of this store listens, and returns a function that removes it. It writes
// none if the store is not a file.
//
// A gateway with serve.tls writes no note: its certificate is for a host name that only its callers know.
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
	_ = os.Remove(path) // left by a gateway that was killed, possibly with other permissions
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(append(b, '\n'))
	return func() { _ = os.Remove(path) }, errors.Join(err, f.Close())
}

// reachable returns an address at which this machine can reach a listener: the loopback address if the listener has an unspecified one.
func reachable(a net.Addr) string {
	t, ok := a.(*net.TCPAddr)
	if !ok || !t.IP.IsUnspecified() {
		return a.String()
	}
	own := *t
	own.IP = net.IPv4(127, 0, 0, 1)
	if t.IP.To4() == nil {
		own.IP = net.IPv6loopback
	}
	return own.String()
}
