package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe/store/sqlite"
)

// storeVariable names the store where no flag does.
const storeVariable = "LATHE_STORE"

// storeFlag adds --store.
func storeFlag(cmd *cobra.Command, name *string) {
	cmd.Flags().StringVar(name, "store", "", "keep runs in a store: sqlite:`PATH` (default $"+storeVariable+")")
}

// openStore opens the store of that name, else of the environment; nil where neither names one.
func openStore(name string, readOnly bool) (*sqlite.Store, error) {
	from := "--store"
	if name == "" {
		name, from = os.Getenv(storeVariable), storeVariable
	}
	if name == "" {
		return nil, nil
	}
	kind, path, _ := strings.Cut(name, ":")
	if kind != "sqlite" || path == "" {
		return nil, usageError("%s %q: want sqlite:PATH", from, name)
	}
	s, err := sqlite.Open(strings.TrimPrefix(path, "//"), &sqlite.Options{ReadOnly: readOnly})
	if err != nil {
		return nil, &exitError{exitFailed, fmt.Errorf("the store %s: %w", path, causeOf(err))}
	}
	return s, nil
}

// needStore is openStore for commands that are of no use without one.
func needStore(name string, readOnly bool) (*sqlite.Store, error) {
	s, err := openStore(name, readOnly)
	if err == nil && s == nil {
		err = usageError("which store? give --store sqlite:PATH, or set %s", storeVariable)
	}
	return s, err
}
