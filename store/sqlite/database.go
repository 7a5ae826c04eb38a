package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"sync"

	"github.com/lathe-run/lathe"
)

// maxBatch is the maximum number of requests in one transaction.
const maxBatch = 128

// A database is an open file with its connections. Every change is executed by one goroutine, the writer, which commits the changes of
// concurrent callers in one transaction.
type database struct {
	write *sql.DB // one connection, for the writer; nil if the file is open for reading only
	read  *sql.DB
	lock  *lock

	requests chan *request
	stop     chan struct{}
	stopped  sync.WaitGroup
	closing  sync.Once
	runs     summaries
	prepared statements
	files    files
	schema   int // version of the file; less than the current one only if the file is open for reading only
	careful  int // number of further batches in which each request gets a savepoint; only the writer uses it
}

// A change changes the database in a transaction. It may be executed again after a transaction that was rolled back.
type change func(ctx context.Context, tx querier) (int64, error)

// A request is a change that the writer commits, possibly together with others.
type request struct {
	ctx  context.Context
	do   change
	done chan answer // buffers one answer
}

// An answer is the result of one request: the number that its change returned, or the error with which it failed.
type answer struct {
	end int64
	err error
}

// source returns the URI of the file with the settings of each connection.
func source(path, mode, more string) string {
	q := "mode=" + mode + "&_pragma=busy_timeout(10000)&_pragma=synchronous(2)&_pragma=secure_delete(1)&_pragma=trusted_schema(0)"
	if mode != "ro" {
		q += "&_pragma=journal_mode(WAL)"
	}
	if more != "" {
		q += "&" + more
	}
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: q}).String()
}

// snapshot executes read in one read transaction.
func (d *database) snapshot(ctx context.Context, read func(*sql.Tx) error) error {
	tx, err := d.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing was changed
	return read(tx)
}

var errReadOnly = errors.New("the file is open for reading only")

// submit queues do for the writer and waits for the commit. It returns the number and the error of do.
func (d *database) submit(ctx context.Context, do change) (int64, error) {
	if d.write == nil {
		return 0, lathe.CodeInvalidRequest.Wrap("sqlite: write", errReadOnly)
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	r := &request{ctx: ctx, do: do, done: make(chan answer, 1)}
	select {
	case d.requests <- r:
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-d.stop:
		return 0, errClosed
	}
	select {
	case a := <-r.done:
		return a.end, a.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// serve commits requests. Requests that arrive during a commit are committed together.
func (d *database) serve() {
	batch := make([]*request, 0, maxBatch)
	for {
		select {
		case r := <-d.requests:
			d.commit(d.gather(append(batch[:0], r)))
		case <-d.stop:
			return
		}
	}
}

// gather adds the requests that callers are sending to the batch.
func (d *database) gather(batch []*request) []*request {
	for len(batch) < maxBatch {
		select {
		case r := <-d.requests:
			batch = append(batch, r)
		default:
			return batch
		}
	}
	return batch
}

// carefulBatches is the number of batches with savepoints after one in which a request has failed.
const carefulBatches = 16

// commit executes the requests of a batch, so that the failure of one does not affect the others, and sends their answers after the
// transaction is on the disk. Savepoints make each change twice as expensive, so a batch is executed without them first. If a request fails,
// the whole batch is rolled back and executed again with them, and the next carefulBatches batches have them from the start.
func (d *database) commit(batch []*request) {
	answers := make([]answer, len(batch))
	run := together
	if d.careful > 0 {
		run = inSavepoint
		d.careful--
	}
	err := d.execute(batch, answers, run)
	if errors.Is(err, errTogether) { // which request failed, and why, is found with savepoints
		clear(answers)
		d.careful = carefulBatches
		err = d.execute(batch, answers, inSavepoint)
	}
	if err != nil {
		err = fmt.Errorf("the file could not be written: %w", cause(err))
	}
	fault := err // what Check is to report: an error of the transaction, or of the disk in one request
	for i := range answers {
		a := &answers[i]
		if a.err == nil {
			a.err = err // that of the whole transaction, or nil
			continue
		}
		a.err = cause(a.err)
		if ofDisk(a.err) {
			fault = a.err
		}
	}
	d.files.wrote(fault) // before the answers, so that Check reports it to a caller with an answer
	for i, r := range batch {
		r.done <- answers[i]
	}
}

// errTogether means that a request failed without a savepoint, so that its changes cannot be undone without those of others.
var errTogether = errors.New("a request of the batch failed")

// execute executes the requests of a batch in one transaction, each with run, and sets their answers. The error is that of the whole
// transaction, which then has no effect; the error of one request alone is in its answer.
func (d *database) execute(batch []*request, answers []answer, run func(context.Context, querier, change) (answer, error)) error {
	ctx := context.Background() // not the context of a request: the batch contains others
	if err := d.files.check(); err != nil {
		return err
	}
	tx, err := d.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // no effect after a commit
	in := prepared{tx, d.prepared}
	for i, r := range batch {
		if err := r.ctx.Err(); err != nil {
			answers[i].err = err
			continue
		}
		if answers[i], err = run(ctx, in, r.do); err != nil {
			return err
		}
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	return d.files.check() // a file that was removed in the meantime does not contain the data
}

// together executes do without a savepoint, so that its failure loses the whole transaction.
func together(ctx context.Context, tx querier, do change) (a answer, fatal error) {
	if a.end, fatal = do(ctx, tx); fatal != nil {
		fatal = errTogether
	}
	return a, fatal
}

// inSavepoint executes do in a savepoint, so that its failure undoes only its own changes. fatal is not nil if the whole transaction is
// lost.
func inSavepoint(ctx context.Context, tx querier, do change) (a answer, fatal error) {
	if err := put(ctx, tx, setPoint); err != nil {
		return answer{err: err}, err
	}
	if a.end, a.err = do(ctx, tx); a.err != nil {
		if err := put(ctx, tx, "ROLLBACK TO one"); err != nil {
			return a, err
		}
	}
	return a, put(ctx, tx, releasePoint)
}
