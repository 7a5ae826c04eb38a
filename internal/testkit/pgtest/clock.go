package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// A Clock is the clock of one schema, which advances only when a test sets it. Statements of the schema's
// users that call now() or clock_timestamp() without a qualifier read this clock; all else uses the server's.
type Clock struct {
	// URL is the schema's, for connections that use the clock.
	URL string

	tb    testing.TB
	conn  *pgx.Conn
	setTo time.Time
}

// NewClock makes a clock for the schema of a URL, which must be empty.
func NewClock(tb testing.TB, schema string) *Clock {
	tb.Helper()
	u, err := url.Parse(schema)
	if err != nil {
		tb.Fatal("pgtest: no URL")
	}
	q := u.Query()
	name := q.Get("search_path")
	q.Set("search_path", name+",pg_catalog") // named, it comes after
	u.RawQuery = q.Encode()
	c := &Clock{URL: u.String(), tb: tb}
	if c.conn, err = pgx.Connect(tb.Context(), schema); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := c.conn.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	statements := []string{"SET synchronous_commit = off", "CREATE TABLE clock (at timestamptz NOT NULL)", "INSERT INTO clock VALUES (pg_catalog.now())"}
	for _, f := range []string{"now", "clock_timestamp"} { // as far as statements ask by a name
		statements = append(statements, fmt.Sprintf("CREATE FUNCTION %s() RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT at FROM %s.clock'", f, name))
	}
	for _, statement := range statements {
		if _, err := c.conn.Exec(tb.Context(), statement); err != nil {
			tb.Fatal(err)
		}
	}
	return c
}

// Set sets the clock. It must not be called by several goroutines at once.
func (c *Clock) Set(now time.Time) {
	if c.setTo.Equal(now) {
		return
	}
	if _, err := c.conn.Exec(context.Background(), "UPDATE clock SET at = $1", now); err != nil {
		c.tb.Error(err)
	}
	c.setTo = now
}
