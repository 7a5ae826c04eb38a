package main

import (
	"fmt"
	"os"

	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/daemon"
)

// storeVariable is the environment variable that names the store if no flag does.
const storeVariable = daemon.StoreVariable

// storeFlags select the store.
type storeFlags struct {
	Store string `flag:"store" usage:"keep runs in a *store*: sqlite:PATH or postgres://USER@HOST/DATABASE (default $LATHE_STORE)"`
}

// A storeAccess is what a command does with a store.
type storeAccess bool

const (
	readWrite storeAccess = false
	readOnly  storeAccess = true
)

// openStore opens the named store, or else the one that the environment names. It returns nil if neither names a store that outlives the
// process.
func openStore(name string, access storeAccess) (app.Store, error) {
	name, from := lastingStore(name)
	if name == "" {
		return nil, nil
	}
	line := startProgress(os.Stderr, showProgress)
	line.Say("opening the store") // of an older version, whose tables are brought to this one
	s, err := app.OpenStore(name, &app.StoreOptions{ReadOnly: bool(access), From: from})
	line.Stop()
	for _, path := range app.Tightened(s) {
		fmt.Fprintf(os.Stderr, "note: others than its owner could open %s: they cannot any more\n", path)
	}
	return s, err
}

// lastingStore does the same as [daemon.NamedStore] without a configuration, but returns "" for a store of the environment that does not outlive the process.
func lastingStore(flag string) (name, from string) {
	name, from = daemon.NamedStore(flag, "")
	if from == storeVariable && (name == "memory" || name == "none") {
		name = ""
	}
	return name, from
}

// needStore does the same as openStore, but returns a usage error if no store is named.
func needStore(name string, access storeAccess) (app.Store, error) {
	s, err := openStore(name, access)
	if err == nil && s == nil {
		err = usageError("which store? give --store sqlite:PATH or postgres://USER@HOST/DATABASE, or set %s", storeVariable)
	}
	return s, err
}
