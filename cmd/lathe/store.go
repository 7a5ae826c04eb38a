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

// openStore opens the named store, or else the one that the environment names. It returns nil if neither names a store that outlives the
// process.
func openStore(name string, readOnly bool) (app.Store, error) {
	name, from := namedStore(name, "")
	if name == "" || from == storeVariable && (name == "memory" || name == "none") {
		return nil, nil
	}
	line := startProgress(os.Stderr, false)
	line.Say("opening the store") // of an older version, whose tables are brought to this one
	s, err := app.OpenStore(name, &app.StoreOptions{ReadOnly: readOnly, From: from})
	line.Stop()
	for _, path := range app.Tightened(s) {
		fmt.Fprintf(os.Stderr, "note: others than its owner could open %s: they cannot any more\n", path)
	}
	return s, err
}

// namedStore returns the name of the store and its source: see [daemon.NamedStore].
func namedStore(flag, configured string) (name, from string) {
	return daemon.NamedStore(flag, configured)
}

// needStore does the same as openStore, but returns a usage error if no store is named.
func needStore(name string, readOnly bool) (app.Store, error) {
	s, err := openStore(name, readOnly)
	if err == nil && s == nil {
		err = usageError("which store? give --store sqlite:PATH or postgres://USER@HOST/DATABASE, or set %s", storeVariable)
	}
	return s, err
}
