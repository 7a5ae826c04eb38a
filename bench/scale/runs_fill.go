package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/bench/internal/proc"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/testkit/pgtest"
	"github.com/lathe-run/lathe/store"
)

// The runs of a store are copies of one run for each status. Run i starts two seconds after run i-1, and every second run is of one
// key; the others are of keysOfRuns keys. One run in 100 has failed, and one in 1,000 waits for an approval: both are of the other keys.
const (
	keysOfRuns   = 1000
	modelsOfRuns = 20
	largeKey     = "key-large"
	mostGone     = 100_000 // of which a store keeps a record
)

// firstStart is when run 0 started.
var firstStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func startOf(i int) time.Time { return firstStart.Add(time.Duration(i) * 2 * time.Second) }

func runID(i int) string { return fmt.Sprintf("run_01J%023d", i) }

func smallKey(i int) string { return fmt.Sprintf("key-%04d", i/2%keysOfRuns) }

// A benchStore is a store as the curve uses it.
type benchStore interface {
	app.Store
	store.Ledger
}

// A runStore is a store whose number of runs grows.
type runStore struct {
	benchStore
	name string // for app.OpenStore
	size int    // copies in it
	// others is the CPU time of other processes that work for the store; nil if none exist.
	others func() time.Duration
	syntax *syntax
	db     interface {
		exec(ctx context.Context, statement string) error
		columns(ctx context.Context, table string) ([]string, error)
		close() error
	}
	stop func() // of the server; nil if none exists
}

// syntax is how expressions are written in SQL of a kind.
type syntax struct {
	series string // the numbers from %[1]d to %[2]d, as i
	id, at string // the id of run i, and when it started in RFC 3339
	key    string // of run i
	// What is around a column of bytes to make it text, and around a text to make it bytes.
	fromBytes, fromBytesEnd, toBytes, toBytesEnd string

	day  string // of run i
	gone string // the time of a removal
}

var sqliteSyntax = &syntax{
	series:    "(WITH RECURSIVE c(i) AS (SELECT %[1]d UNION ALL SELECT i + 1 FROM c WHERE i < %[2]d) SELECT i FROM c)",
	id:        "printf('run_01J%023d', i)",
	at:        "strftime('%Y-%m-%dT%H:%M:%SZ', 1767225600 + 2 * i, 'unixepoch')",
	key:       "CASE i % 2 WHEN 1 THEN 'key-large' ELSE printf('key-%04d', i / 2 % 1000) END",
	fromBytes: "CAST(", fromBytesEnd: " AS TEXT)", toBytes: "CAST(", toBytesEnd: " AS BLOB)",
	day:  "date(1767225600 + 2 * i, 'unixepoch')",
	gone: "i",
}

var postgresSyntax = &syntax{
	series:    "generate_series(%[1]d, %[2]d) AS c(i)",
	id:        "'run_01J' || lpad(i::text, 23, '0')",
	at:        `to_char(to_timestamp(1767225600 + 2 * i) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`,
	key:       "CASE i % 2 WHEN 1 THEN 'key-large' ELSE 'key-' || lpad((i / 2 % 1000)::text, 4, '0') END",
	fromBytes: "convert_from(", fromBytesEnd: ", 'UTF8')", toBytes: "convert_to(", toBytesEnd: ", 'UTF8')",
	day:  "to_char(to_timestamp(1767225600 + 2 * i) AT TIME ZONE 'UTC', 'YYYY-MM-DD')",
	gone: "to_timestamp(i)",
}

// The texts of a template that a copy has its own for.
const (
	templateKey, templateSession = "key-of-template", "session-of-template"
	templateModel                = "model-of-template"
)

// templates are the runs that are copied, with the condition on i for each.
var templates = []struct {
	id, where string
	last      event.Data
}{
	{"run_template_completed", "i % 100 <> 0 AND i % 1000 <> 2", &event.RunFinished{Reason: lathe.ReasonAnswered, Status: "completed", Turns: 1, LatencyMS: 812, Answer: templateAnswer}},
	{"run_template_failed", "i % 100 = 0", &event.RunFinished{Reason: lathe.ReasonInternal, Status: "failed", Turns: 1, LatencyMS: 812, ErrorCode: "internal"}},
	{"run_template_parked", "i % 1000 = 2", &event.RunPaused{Reason: lathe.ReasonAwaitingApproval, Pending: []string{"call_1"}}},
}

const templateAnswer = "The parcel left the depot on Monday and should arrive within three days."

// templateRun returns the events of a run, which has one model call.
func templateRun(id, key, session, model string, at time.Time, last event.Data) []event.Event {
	usage := lathe.Usage{InputTokens: 214, OutputTokens: 23}
	answer := lathe.Assistant(templateAnswer)
	events := []event.Event{
		{Data: &event.RunStarted{Model: model, Provider: "openai", Dialect: "native", Principal: key, Target: model, Input: []byte(`{"v":1}`),
			Messages: []lathe.Message{lathe.System("You are a helpful assistant of a parcel service."), lathe.User("Where is my parcel 4711, and when does it arrive?")}}},
		{Turn: 1, Data: &event.ModelCallStarted{Attempt: 1, Provider: "openai", Model: model, PromptHash: strings.Repeat("0", 64), PromptHashV2: strings.Repeat("1", 64), Messages: 2}},
		{Turn: 1, Data: &event.ModelCallFinished{Attempt: 1, Provider: "openai", Model: model, Status: "success", FinishReason: lathe.FinishStop, Usage: usage, LatencyMS: 807, FirstTokenMS: 214, Message: &answer}},
		{Turn: 1, Data: last},
	}
	for i := range events {
		e := &events[i]
		e.ID, e.RunID, e.RequestID, e.SessionID, e.Time = int64(i+1), id, "req_01J00000000000000000000000", session, at
	}
	return events
}

// newRunStore makes an empty store with the templates beside its tables.
func (s *settings) newRunStore(kind string) (r *runStore, err error) {
	ctx := context.Background()
	r = &runStore{}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	switch kind {
	case "SQLite":
		r.name, r.syntax = "sqlite:"+filepath.Join(s.dir, "runs.db"), sqliteSyntax
	default:
		server, err := pgtest.Open(ctx, "", "shared_buffers=512MB", "max_wal_size=2GB", "log_min_messages=fatal")
		if err != nil {
			return nil, err
		}
		r.name, r.syntax, r.stop = server.URL("postgres"), postgresSyntax, server.Close
		r.others = proc.NewChildren(server.PID()).CPU
	}
	if err := r.open(); err != nil {
		return r, err
	}
	for _, t := range templates {
		if _, err := r.Append(ctx, t.id, 0, templateRun(t.id, templateKey, templateSession, templateModel, firstStart, t.last)...); err != nil {
			return r, err
		}
	}
	if err := r.connect(ctx); err != nil {
		return r, err
	}
	for _, table := range copied {
		if err := r.db.exec(ctx, "CREATE TABLE template_"+table+" AS SELECT * FROM "+table); err != nil {
			return r, err
		}
	}
	for _, t := range templates {
		if err := r.Delete(ctx, t.id); err != nil {
			return r, err
		}
	}
	return r, nil
}

// copied are the tables that have rows of a run.
var copied = []string{"run", "event", "model_call"}

func (r *runStore) open() error {
	st, err := app.OpenStore(r.name, nil)
	if err != nil {
		return err
	}
	b, ok := st.(benchStore)
	if !ok {
		return errors.Join(errors.New("the store has no ledger"), st.Close())
	}
	r.benchStore = b
	return nil
}

// connect opens the database of the store for statements of the bench.
func (r *runStore) connect(ctx context.Context) error {
	path, isFile := strings.CutPrefix(r.name, "sqlite:")
	if isFile {
		db, err := sql.Open("sqlite", path)
		if err != nil {
			return err
		}
		r.db = fileDB{db}
		return nil
	}
	conn, err := pgx.Connect(ctx, r.name)
	if err != nil {
		return err
	}
	r.db = serverDB{conn}
	return nil
}

// grow adds copies until the store has n of them.
func (r *runStore) grow(ctx context.Context, n int) error {
	series := fmt.Sprintf(r.syntax.series, r.size, n-1)
	for _, table := range copied {
		columns, err := r.db.columns(ctx, table)
		if err != nil {
			return err
		}
		values := make([]string, len(columns))
		for i, column := range columns {
			values[i] = r.value(column)
		}
		for _, t := range templates {
			if err := r.db.exec(ctx, fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM %s, template_%s t WHERE t.run_id = '%s' AND (%s)",
				table, strings.Join(columns, ", "), strings.Join(values, ", "), series, table, t.id, t.where)); err != nil {
				return err
			}
		}
	}
	// A row of usage for each day, key and model, and the records of runs that were removed.
	if err := r.db.exec(ctx, fmt.Sprintf(`INSERT INTO ledger_usage (day, key, team, model, calls, estimated, unpriced, input_tokens, cached_tokens, cache_write_tokens, output_tokens, tokens, nanos)
		SELECT %s, %s, '', 'model-' || (i %% %d), 1, 0, 0, 214, 0, 0, 23, 237, 0 FROM %s WHERE true ON CONFLICT DO NOTHING`, r.syntax.day, r.syntax.key, modelsOfRuns, series)); err != nil {
		return err
	}
	if last := min(n, mostGone); r.size < last {
		if err := r.db.exec(ctx, "INSERT INTO gone (run_id, principal, time) SELECT 'gone_' || i, 'key-large', "+r.syntax.gone+" FROM "+fmt.Sprintf(r.syntax.series, r.size, last-1)); err != nil {
			return err
		}
	}
	r.size = n
	return nil
}

// value is what a copy has in a column of a row of t.
func (r *runStore) value(column string) string {
	x := r.syntax
	model, session := fmt.Sprintf("'model-' || (i %% %d)", modelsOfRuns), "'session-' || (i / 10)"
	switch column {
	case "run_id":
		return x.id
	case "started", "updated", "time":
		return "(1767225600 + 2 * CAST(i AS bigint)) * 1000000000"
	case "principal":
		return x.key
	case "session_id":
		return session
	case "seen_id": // its owner has read all
		return "t.last_id"
	case "summary", "body":
		text := x.fromBytes + "t." + column + x.fromBytesEnd
		for _, p := range [][2]string{{"t.run_id", x.id}, {"'" + templateKey + "'", x.key}, {"'" + templateSession + "'", session}, {"'" + templateModel + "'", model},
			{"'" + firstStart.Format(time.RFC3339) + "'", x.at}} {
			text = "replace(" + text + ", " + p[0] + ", " + p[1] + ")"
		}
		return x.toBytes + text + x.toBytesEnd
	default:
		return "t." + column
	}
}

func (r *runStore) close() (err error) {
	if r.db != nil {
		err = r.db.close()
	}
	if r.benchStore != nil {
		err = errors.Join(err, r.Close())
	}
	if r.stop != nil {
		r.stop()
	}
	return err
}

// A fileDB is a connection to an SQLite file.
type fileDB struct{ db *sql.DB }

func (f fileDB) exec(ctx context.Context, statement string) error {
	conn, err := f.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // it is one of a pool
	for _, set := range []string{"PRAGMA busy_timeout = 60000", "PRAGMA synchronous = OFF"} {
		if _, err := conn.ExecContext(ctx, set); err != nil {
			return err
		}
	}
	_, err = conn.ExecContext(ctx, statement)
	return err
}

func (f fileDB) columns(ctx context.Context, table string) ([]string, error) {
	rows, err := f.db.QueryContext(ctx, "SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0", table)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // Err returns the error that matters
	var out []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		out = append(out, name)
	}
	return out, rows.Err()
}

func (f fileDB) close() error { return f.db.Close() }

// A serverDB is a connection to a PostgreSQL server.
type serverDB struct{ conn *pgx.Conn }

func (s serverDB) exec(ctx context.Context, statement string) error {
	_, err := s.conn.Exec(ctx, "SET synchronous_commit = off; "+statement)
	return err
}

func (s serverDB) columns(ctx context.Context, table string) ([]string, error) {
	rows, err := s.conn.Query(ctx, "SELECT column_name FROM information_schema.columns WHERE table_schema = 'public' AND table_name = $1 AND is_generated = 'NEVER'", table)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

func (s serverDB) close() error { return s.conn.Close(context.Background()) }
