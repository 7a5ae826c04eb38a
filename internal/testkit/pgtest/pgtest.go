// Package pgtest starts a PostgreSQL server of its own for the tests of a package: unprivileged, in a
// temporary folder, on a Unix socket. It goes when the tests end, however they end.
//
// A package that uses it says so in its TestMain: os.Exit(pgtest.M(m).Run()).
package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Existing is the environment variable that names a server to use instead: the URL of a role that may
// create schemas in that database.
const Existing = "LATHE_TEST_POSTGRES"

var shared struct {
	sync.Mutex
	server *Server
	err    error
}

// URL returns the URL of an empty schema for the test, on the one server of the test process. Where no
// server can be started, and with -short, the test is skipped.
func URL(tb testing.TB) string {
	tb.Helper()
	return create(tb, Need(tb), os.Getenv(Existing) != "")
}

// Need starts the server of the test process and returns a URL of it, or skips the test as URL does. A test
// whose subtests call URL with it calls Need first: a subtest that skips its parent panics.
func Need(tb testing.TB) string {
	tb.Helper()
	skipShort(tb)
	if base := os.Getenv(Existing); base != "" {
		return base
	}
	shared.Lock()
	if shared.server == nil && shared.err == nil {
		shared.server, shared.err = start(context.Background(), sharedFolder())
	}
	s, err := shared.server, shared.err
	shared.Unlock()
	check(tb, err)
	return s.URL("postgres")
}

// skipShort skips the test in a short run.
func skipShort(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("needs a PostgreSQL server: does not run with -short")
	}
}

func check(tb testing.TB, err error) {
	tb.Helper()
	if errors.Is(err, ErrMissing) {
		tb.Skip(err)
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// create makes an empty schema in the database of base, and removes it after the test where the server
// does not go with the tests.
func create(tb testing.TB, base string, remove bool) string {
	tb.Helper()
	u, err := url.Parse(base)
	if err != nil {
		tb.Fatal("pgtest: " + Existing + " is not a URL")
	}
	name := "lathe_" + strings.ToLower(rand.Text())
	do := func(ctx context.Context, statement string) error {
		conn, err := pgx.Connect(ctx, base)
		if err != nil {
			return err
		}
		_, err = conn.Exec(ctx, statement)
		return errors.Join(err, conn.Close(ctx))
	}
	if err := do(tb.Context(), "CREATE SCHEMA "+name); err != nil {
		tb.Fatal(err)
	}
	if remove {
		tb.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if err := do(ctx, "DROP SCHEMA "+name+" CASCADE"); err != nil {
				tb.Error(err)
			}
		})
	}
	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	return u.String()
}

// A Main runs the tests of a package and stops the server that they shared.
type Main struct{ m interface{ Run() int } }

// M returns the Main of a package's tests. goleak.VerifyTestMain takes it, too.
func M(m interface{ Run() int }) *Main { return &Main{m} }

// Run runs the tests and returns their exit code.
func (m *Main) Run() int {
	code := m.m.Run()
	shared.Lock()
	defer shared.Unlock()
	if shared.server != nil {
		shared.server.stop()
		shared.server = nil
	}
	return code
}
