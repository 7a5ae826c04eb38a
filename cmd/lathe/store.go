package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/store/postgres"
	"github.com/lathe-run/lathe/store/sqlite"
)

// storeVariable names the store where no flag does.
const storeVariable = "LATHE_STORE"

// A runStore keeps runs: a file, or a database that several processes use.
type runStore interface {
	lathe.Retainer
	lathe.FactStore
	Close() error
}

var (
	_ runStore = (*sqlite.Store)(nil)
	_ runStore = (*postgres.Store)(nil)
)

// storeFlag adds --store.
func storeFlag(cmd *cobra.Command, name *string) {
	cmd.Flags().StringVar(name, "store", "", "keep runs in a `store`: sqlite:PATH or postgres://USER@HOST/DATABASE (default $"+storeVariable+")")
}

// openStore opens the store of that name, else of the environment; nil where neither names one.
func openStore(name string, readOnly bool) (runStore, error) {
	return openStoreElse(name, "", readOnly)
}

// openStoreElse is openStore, with a store for where neither names one.
func openStoreElse(name, otherwise string, readOnly bool) (runStore, error) {
	from := "--store"
	if name == "" {
		name, from = os.Getenv(storeVariable), storeVariable
	}
	if name == "" {
		name, from = otherwise, "serve.store"
	}
	if name == "" {
		return nil, nil
	}
	kind, path, _ := strings.Cut(name, ":")
	switch {
	case kind == "sqlite" && path != "":
		s, err := sqlite.Open(strings.TrimPrefix(path, "//"), &sqlite.Options{ReadOnly: readOnly})
		if err != nil {
			return nil, &exitError{exitFailed, fmt.Errorf("the store %s: %w", path, causeOf(err))}
		}
		return s, nil
	case kind == "postgres", kind == "postgresql":
		s, err := postgres.Open(context.Background(), name, nil)
		if err != nil {
			return nil, &exitError{exitFailed, fmt.Errorf("the store %s: %w", shownStore(name), causeOf(err))}
		}
		return s, nil
	}
	return nil, usageError("%s %q: want sqlite:PATH or postgres://USER@HOST/DATABASE", from, shownStore(name))
}

// shownStore returns the name of a store without what may be a password.
func shownStore(name string) string {
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

// needStore is openStore for commands that are of no use without one.
func needStore(name string, readOnly bool) (runStore, error) {
	s, err := openStore(name, readOnly)
	if err == nil && s == nil {
		err = usageError("which store? give --store sqlite:PATH or postgres://USER@HOST/DATABASE, or set %s", storeVariable)
	}
	return s, err
}
