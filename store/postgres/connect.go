package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lathe-run/lathe"
)

// Limits of a connection. Parameters in the URL replace those of the server.
const (
	connectTimeout   = 5 * time.Second
	statementTimeout = 10 * time.Second // of the server, per statement
	lockTimeout      = 2 * time.Second  // of the server, per lock
	idleTimeout      = 10 * time.Second // of the server, for an idle transaction
	tryTimeout       = 15 * time.Second // for the response to a statement
	oldestServer     = 140_000          // as server_version_num: 14.0
)

// configure parses the URL. Its errors do not quote it, because it may contain a password.
func (s *Store) configure(url string, o *Options) (*pgxpool.Config, error) {
	if !strings.HasPrefix(url, "postgres://") && !strings.HasPrefix(url, "postgresql://") {
		return nil, errors.New("the URL of a database begins with postgres://")
	}
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("the URL cannot be read: it looks like postgres://user:password@host:5432/database?sslmode=verify-full, with % escapes for what is special in a password")
	}
	if o.MaxConns < minConns {
		return nil, fmt.Errorf("%d connections are too few: at least %d", o.MaxConns, minConns)
	}
	cfg.MaxConns = int32(o.MaxConns - watches)
	c := cfg.ConnConfig
	if c.ConnectTimeout <= 0 || c.ConnectTimeout > connectTimeout {
		c.ConnectTimeout = connectTimeout
	}
	if _, ok := c.RuntimeParams["application_name"]; !ok {
		c.RuntimeParams["application_name"] = "lathe"
	}
	c.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite // of several hosts, connect to the primary
	cfg.PingTimeout = connectTimeout
	cfg.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if err := setSession(ctx, conn); err != nil {
			return err
		}
		if err := checkSettings(ctx, conn, o.AllowUnsafeDurability); err != nil {
			return err
		}
		return s.checkRestart(ctx, conn)
	}
	return cfg, nil
}

// setSession sets the settings of a session, except those in the URL. It does not send them as startup parameters, because a pooler would
// refuse them.
func setSession(ctx context.Context, conn *pgx.Conn) error {
	settings := map[string]string{
		"statement_timeout":                   milliseconds(statementTimeout),
		"lock_timeout":                        milliseconds(lockTimeout),
		"idle_in_transaction_session_timeout": milliseconds(idleTimeout),
		// Plans are cached, and often made while the tables are empty: they must not be plans for small tables.
		"plan_cache_mode": "force_generic_plan",
		"enable_seqscan":  "off",
		// A page is read in the order of an index. With a bitmap scan, the server would read and sort all rows of a key, because a generic
		// plan assumes that each key has an average number of rows.
		"enable_bitmapscan": "off",
		// A disabled scan in a plan can raise its cost above jit_above_cost: the server would compile the plan, which takes 60 ms.
		"jit": "off",
	}
	var names, values []string
	for name, value := range settings {
		if _, ok := conn.Config().RuntimeParams[name]; !ok {
			names, values = append(names, name), append(values, value)
		}
	}
	_, err := conn.Exec(ctx, "SELECT set_config(name, value, false) FROM unnest($1::text[], $2::text[]) AS s(name, value)", names, values)
	return err
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// checkSettings returns an error for a server that is too old, or that may lose confirmed transactions.
func checkSettings(ctx context.Context, conn *pgx.Conn, allowUnsafe bool) error {
	var version int
	var off []string
	err := conn.QueryRow(ctx, `SELECT current_setting('server_version_num')::int,
		ARRAY(SELECT s FROM unnest(ARRAY['fsync', 'full_page_writes', 'synchronous_commit']) s WHERE current_setting(s) = 'off')`).Scan(&version, &off)
	if err != nil {
		return err
	}
	if version < oldestServer {
		return lathe.CodeInvalidConfig.Errorf("postgres: connect", "the server is PostgreSQL %d: 14 or later is needed", version/10_000)
	}
	if len(off) > 0 && !allowUnsafe {
		return lathe.CodeInvalidConfig.Errorf("postgres: connect", "the server has %s off, and may lose what it has confirmed: turn that on, or allow unsafe durability", strings.Join(off, " and "))
	}
	return nil
}
