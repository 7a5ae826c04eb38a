package main

import (
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/app"
)

// A name of a store may hold a password, and is shown without.
func TestStoreIsShownWithoutItsPassword(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"sqlite:runs.db": "sqlite:runs.db", "mongo:x": "mongo:x",
		"postgres://app:canary@db:5432/tools?sslmode=verify-full": "postgres://db:5432/tools",
		"postgres://db/tools?password=canary":                     "postgres://db/tools",
		"mysql://app:canary@db/tools":                             "mysql://db/tools",
		"postgres:app:canary@":                                    "postgres:…",
		"postgres://app:ca nary@db:x/":                            "postgres:…",
	} {
		if got := app.ShownStoreName(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	for _, name := range []string{"mysql://app:canary@db/tools", "postgres://app:canary@127.0.0.1:1/tools?connect_timeout=1", "postgres://app:canary@db:x/tools"} {
		if _, err := openStore(name, readWrite); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%v", err)
		}
	}
}
