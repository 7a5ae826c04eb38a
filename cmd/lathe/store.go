package main

import (
	"fmt"
	"os"

	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/daemon"
)

// storeVariable names the store where no flag does.
const storeVariable = daemon.StoreVariable

// storeFlags name the store.
type storeFlags struct {
	Store string `flag:"store" usage:"keep runs in a *store*: sqlite:PATH or postgres://USER@HOST/DATABASE (default $LATHE_STORE)"`
}

// openStore opens the store of that name, else of the environment; nil where neither names one that outlives a
// process.
func openStore(name string, readOnly bool) (app.Store, error) {
	name, from := namedStore(name, "")
	if name == "" || from == storeVariable && (name == "memory" || name == "none") {
		return nil, nil
	}
	s, err := app.OpenStore(name, &app.StoreOptions{ReadOnly: readOnly, From: from})
	for _, path := range app.Tightened(s) {
		fmt.Fprintf(os.Stderr, "note: others than its owner could open %s: they cannot any more\n", path)
	}
	return s, err
}

// namedStore is the name of the store, and what names it.
func namedStore(flag, configured string) (name, from string) {
	return daemon.NamedStore(flag, configured)
}

// needStore is openStore for commands that are of no use without one.
func needStore(name string, readOnly bool) (app.Store, error) {
	s, err := openStore(name, readOnly)
	if err == nil && s == nil {
		err = usageError("which store? give --store sqlite:PATH or postgres://USER@HOST/DATABASE, or set %s", storeVariable)
	}
	return s, err
}
