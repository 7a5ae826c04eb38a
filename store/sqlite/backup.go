package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	engine "modernc.org/sqlite"

	"github.com/lathe-run/lathe"
)

// This file copies, verifies and replaces the database file as a whole.

// backupStep is the number of pages that are copied between two checks of the context: 1 MiB with pages of 4 KiB.
const backupStep = 256

// maxFaults is the maximum number of faults that [Verify] lists.
const maxFaults = 100

// BackupOptions configure [Backup] and [Restore]. The zero value is usable.
type BackupOptions struct {
	// Progress, if not nil, is called after each 256 copied pages with the number of pages that are copied and the number of all pages. It
	// is called on the goroutine of the caller.
	Progress func(done, total int)
}

// Contents describes the store that [Verify], [Backup] or [Restore] has read. If there are Faults in tables, Runs and Events are 0.
type Contents struct {
	Schema int   // version of the database schema: see [SchemaVersion]
	Runs   int   // number of runs
	Events int   // number of events of all runs
	Bytes  int64 // size of the database without its write-ahead log
	// Faults describe, for operators, what is damaged, in at most 100 texts; empty: the file is intact. Faults are what SQLite's integrity
	// check reports; tables, indexes, triggers and views that differ from those of this version; and runs whose log has gaps.
	Faults []string
}

// Backup copies the store in the file path to a new file, whose name is the parameter to, and verifies the copy. The copy has the state of
// one moment, and only its owner can read it. Other processes may use the store meanwhile; its write-ahead log grows until Backup returns.
// The copy is first written to a file with the name to and the suffix .partial.
//
// The error has the code conflict if the new file or the partial file exists, not_found if there is no file at path, unavailable if that
// file is damaged, is not a store, or has a newer schema, and cancelled or timeout if ctx is done. After an error the copy is removed;
// after a crash, the partial file remains. opts may be nil.
func Backup(ctx context.Context, path, to string, opts *BackupOptions) (*Contents, error) {
	const op = "sqlite: backup"
	path, err := present(path)
	if err != nil {
		return nil, lathe.CodeNotFound.Wrap(op, err)
	}
	if to, err = filepath.Abs(to); err != nil {
		return nil, lathe.CodeInvalidRequest.Wrap(op, err)
	}
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return nil, lathe.CodeConflict.Wrap(op, errors.Join(fmt.Errorf("%s exists: name a new file", to), err))
	}
	found, err := writeCopy(ctx, path, to+".partial", opts)
	if err != nil {
		return nil, failure(ctx, op, opening(err))
	}
	if _, err := os.Lstat(to); err == nil { // created since the first check
		err = fmt.Errorf("%s exists: name a new file", to)
		return nil, lathe.CodeConflict.Wrap(op, errors.Join(err, os.Remove(to+".partial")))
	}
	if err := os.Rename(to+".partial", to); err != nil {
		return nil, failure(ctx, op, errors.Join(err, os.Remove(to+".partial")))
	}
	if err := syncFolder(to); err != nil {
		return nil, failure(ctx, op, err)
	}
	return found, nil
}

// Restore replaces the store in the file path by the backup in the file from. It verifies the backup before it changes anything, and
// returns an error for a newer schema or a backup with faults. found describes the new store. An existing store is renamed to path with the
// suffix .before-restore; kept is that name, or "" if there was no store at path. If path is a symbolic link, Restore replaces its target,
// and the link remains. If the backup has an older schema, [Open] migrates it later. opts may be nil.
//
// The error has the code conflict if this or another process has opened the store for writing, or a file that Restore must create exists
// already; not_found if there is no file from; invalid_request if from is the store itself; and unavailable if the backup is damaged or is
// not a store.
func Restore(ctx context.Context, path, from string, opts *BackupOptions) (kept string, found *Contents, err error) {
	const op = "sqlite: restore"
	from, err = present(from)
	if err != nil {
		return "", nil, lathe.CodeNotFound.Wrap(op, err)
	}
	if path, err = resolve(path); err != nil {
		return "", nil, lathe.CodeInvalidRequest.Wrap(op, err)
	}
	if a, err := os.Stat(path); err == nil {
		if b, err := os.Stat(from); err == nil && os.SameFile(a, b) {
			return "", nil, lathe.CodeInvalidRequest.Errorf(op, "%s is the store itself", from)
		}
	}
	l, err := takeLock(path + ".lock")
	if err != nil {
		return "", nil, lockCode(err).Wrap(op, opening(err))
	}
	defer l.release()
	if found, err = writeCopy(ctx, from, path+".partial", opts); err != nil {
		return "", nil, failure(ctx, op, opening(err))
	}
	if kept, err = setAside(path); err == nil {
		err = os.Rename(path+".partial", path)
	}
	if err != nil {
		return "", nil, failure(ctx, op, errors.Join(err, os.Remove(path+".partial")))
	}
	if err := syncFolder(path); err != nil {
		return "", nil, failure(ctx, op, err)
	}
	return kept, found, nil
}

// setAside links the database file to a second name and renames the files beside it, so that the database exists at its path at any moment.
// It returns the second name, or "" if there is no database.
func setAside(path string) (kept string, err error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	_ = inOneFile(context.Background(), path) // a damaged store is set aside with its log
	kept = path + ".before-restore"
	for _, suffix := range suffixes {
		if _, err := os.Lstat(kept + suffix); err == nil {
			return "", lathe.CodeConflict.Errorf("sqlite: restore", "%s is there from an earlier restore: move it away", kept+suffix)
		}
	}
	if err := os.Link(path, kept); err != nil { // for file systems without hard links
		if err := os.Rename(path, kept); err != nil {
			return "", err
		}
	}
	for _, suffix := range suffixes[1:] {
		if err := os.Rename(path+suffix, kept+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return kept, nil
}

// bareSource returns the URI of an existing file, without the journal mode of a store.
func bareSource(path string) string {
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: "mode=rw"}).String()
}

// inOneFile moves the write-ahead log into the database and disables it, so that a reader creates no other files. Open enables it again.
func inOneFile(ctx context.Context, path string) error {
	db, err := sql.Open("sqlite", bareSource(path)+"&_pragma=busy_timeout(10000)&_pragma=synchronous(2)")
	if err != nil {
		return err
	}
	var mode string
	if err = db.QueryRowContext(ctx, "PRAGMA journal_mode = DELETE").Scan(&mode); err == nil && mode != "delete" {
		err = fmt.Errorf("the journal of %s is in mode %s", path, mode)
	}
	return errors.Join(err, db.Close())
}

// Verify reads the store in the file at path and returns its contents and faults. Other processes may use the store at the same time.
// Faults are not an error. Verify does not change the store. The error has the code not_found if there is no file at path, and unavailable
// if the file cannot be read, is not a store, or has a newer schema.
func Verify(ctx context.Context, path string) (*Contents, error) {
	const op = "sqlite: verify"
	path, err := present(path)
	if err != nil {
		return nil, lathe.CodeNotFound.Wrap(op, err)
	}
	found, err := verify(ctx, source(path, "ro", ""))
	if err == nil {
		err = restrictLog(path)
	}
	if err != nil {
		return nil, failure(ctx, op, opening(err))
	}
	return found, nil
}

// present returns the file to which path leads, or an error if it is not a regular file.
func present(path string) (string, error) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return "", errors.Join(fmt.Errorf("there is no store %s", path), withoutNotExist(err))
	}
	return resolve(path)
}

// withoutNotExist returns nil for fs.ErrNotExist, which the caller's message already states.
func withoutNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// writeCopy copies the database at path to a new file, verifies the copy and flushes it to the disk. If it fails, it removes the file.
func writeCopy(ctx context.Context, path, to string, opts *BackupOptions) (found *Contents, err error) {
	f, err := os.OpenFile(to, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, lathe.CodeConflict.Errorf("sqlite: copy", "%s exists: another process writes it, or was interrupted; remove it if none does", to)
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			found = nil
			err = errors.Join(err, os.Remove(to))
		}
	}()
	if err := copyPages(ctx, path, to, opts); err != nil {
		return nil, err
	}
	if err := inOneFile(ctx, to); err != nil {
		return nil, err
	}
	if found, err = verify(ctx, source(to, "ro", "immutable=1")); err != nil {
		return nil, err
	}
	if len(found.Faults) > 0 {
		return nil, fmt.Errorf("%s is damaged: %s", path, found.Faults[0])
	}
	return found, f.Sync()
}

// copyPages copies the pages of the database as of one transaction.
func copyPages(ctx context.Context, path, to string, opts *BackupOptions) error {
	db, err := sql.Open("sqlite", source(path, "ro", ""))
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // only read
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	// A read transaction keeps its state of the database: without one, each commit of another process would restart the copy.
	if err := put(ctx, conn, "BEGIN"); err != nil {
		return err
	}
	if _, err := readVersion(ctx, conn); err != nil {
		return err
	}
	if err := restrictLog(path); err != nil {
		return err
	}
	return conn.Raw(func(c any) error {
		b, err := c.(interface {
			NewBackup(uri string) (*engine.Backup, error)
		}).NewBackup(bareSource(to) + "&_pragma=synchronous(0)") // inOneFile and Sync flush it at the end
		if err != nil {
			return err
		}
		more := true
		for more {
			if err = ctx.Err(); err != nil {
				break
			}
			if more, err = b.Step(backupStep); err != nil {
				break
			}
			if opts != nil && opts.Progress != nil {
				total := b.PageCount()
				opts.Progress(total-b.Remaining(), total)
			}
		}
		return errors.Join(err, b.Finish())
	})
}

// verify reads the version, the size and the faults of the database. Faults in tables end it before it counts runs and events.
func verify(ctx context.Context, uri string) (*Contents, error) {
	db, err := sql.Open("sqlite", uri)
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.Close() }() // only read
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }() // only read
	c := &Contents{}
	if c.Schema, err = readVersion(ctx, tx); err != nil {
		return nil, err
	}
	if err := tx.QueryRowContext(ctx, "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()").Scan(&c.Bytes); err != nil {
		return nil, err
	}
	if err := c.appendFaults(ctx, tx, fmt.Sprintf("PRAGMA integrity_check(%d)", maxFaults), "ok"); err != nil || len(c.Faults) > 0 {
		return c, err // damaged tables are not counted
	}
	if err := c.checkSchema(ctx, tx); err != nil || len(c.Faults) > 0 {
		return c, err // tables that differ are not counted
	}
	for query, into := range map[string]*int{"SELECT count(*) FROM run": &c.Runs, "SELECT count(*) FROM event": &c.Events} {
		if err := tx.QueryRowContext(ctx, query).Scan(into); err != nil {
			return nil, err
		}
	}
	queries := logFaults
	if c.Schema >= messagesVersion {
		queries = slices.Concat(queries, messageFaults)
	}
	for _, query := range queries {
		if err := c.appendFaults(ctx, tx, fmt.Sprintf("SELECT * FROM (%s) LIMIT %d", query, maxFaults), ""); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// The queries for faults of logs and, since messagesVersion, of messages. Each row is the text of a fault.
var (
	logFaults = []string{
		`SELECT format('the log of %s has %d events, its last one is %d and its entry says %d', r.run_id, count(e.id), coalesce(max(e.id), 0), r.last_id)
			FROM run r LEFT JOIN event e USING (run_id) GROUP BY r.run_id HAVING count(e.id) <> r.last_id OR coalesce(max(e.id), 0) <> r.last_id`,
		`SELECT format('there are %d events of %s, which has no entry', count(*), run_id) FROM event
			WHERE run_id NOT IN (SELECT run_id FROM run) GROUP BY run_id`,
		`SELECT format('event %d of %s is not JSON', id, run_id) FROM event WHERE NOT json_valid(CAST(body AS TEXT))`,
	}
	messageFaults = []string{
		`SELECT format('a message of %s is missing', run_id) FROM conversation WHERE last NOT IN (SELECT digest FROM message)`,
		`SELECT format('there is a conversation of %s, which has no event %d', run_id, event_id) FROM conversation
				WHERE NOT EXISTS (SELECT 1 FROM event WHERE event.run_id = conversation.run_id AND id = event_id)`,
		`SELECT format('the message before the message %s is missing', hex(digest)) FROM message WHERE previous IS NOT NULL AND previous NOT IN (SELECT digest FROM message)`,
		`SELECT format('the message %s is not JSON', hex(digest)) FROM message WHERE NOT json_valid(CAST(body AS TEXT))`,
		`SELECT format('no run has the message %s', hex(digest)) FROM message m WHERE NOT EXISTS (SELECT 1 FROM conversation WHERE last = m.digest)
				AND NOT EXISTS (SELECT 1 FROM message WHERE previous = m.digest)`,
	}
)

// appendFaults appends the rows of a query with one column to the faults, except rows with the text intact.
func (c *Contents) appendFaults(ctx context.Context, tx *sql.Tx, query, intact string) error {
	return each(ctx, tx, func(scan scanner) error {
		var text string
		err := scan(&text)
		if err == nil && text != intact {
			c.addFault(text)
		}
		return err
	}, query)
}

func (c *Contents) addFault(text string) {
	if len(c.Faults) < maxFaults {
		c.Faults = append(c.Faults, text)
	}
}

// syncFolder flushes the directory of a renamed file to the disk.
func syncFolder(path string) error {
	if runtime.GOOS == "windows" { // directories cannot be opened there
		return nil
	}
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
