package audit

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// DefaultMaxBytes is the size, in bytes, at which the log starts a new file.
const DefaultMaxBytes = 100 << 20

// Options are the options of [Open], which copies them. The zero value is usable.
type Options struct {
	// Content includes the text of messages, arguments and outputs in the lines.
	Content bool
	// HashKey makes the hashes of texts HMACs, so that guessed texts cannot be verified without the key.
	HashKey []byte
	// MaxBytes is the size, in bytes, at which the file is renamed and a new one is created; 0: [DefaultMaxBytes]. A file may exceed
	// MaxBytes by one batch of lines.
	MaxBytes int64
	Now      func() time.Time // nil: time.Now
}

// A Log appends to one file, to which several processes may append at once. When a method has returned without an error, its line survives
// a crash of the process and of the machine. Its methods may be called from several goroutines at once; concurrent lines are written and
// synced in one batch.
//
// Errors are *[lathe.Error] with the code unavailable, cancelled or timeout. If ctx ends during a write, the line may or may not be
// written. If incomplete lines cannot be removed after an error, or a sync fails, the log refuses all further lines until it is opened
// again.
type Log struct {
	opts Options

	mu     sync.Mutex        // guards next and actors
	next   *batch            // to which add appends lines; nil: the next line begins a batch
	actors map[string]string // run ID → principal, for the runs whose events Emit received

	turn chan struct{} // has one slot: the goroutine that has filled it may write to the file
	file file
}

// A batch has the lines of one write.
type batch struct {
	lines []*Line
	done  chan struct{}
	err   error // valid after done is closed
}

// Open opens the log at path and creates it if it does not exist; its directory must exist. It removes an incomplete line that a crashed
// process left at the end, and writes a line of kind Recovered that records the removal.
func Open(path string, opts *Options) (*Log, error) {
	l := &Log{actors: map[string]string{}, turn: make(chan struct{}, 1)}
	if opts != nil {
		l.opts = *opts
		l.opts.HashKey = bytes.Clone(opts.HashKey)
	}
	if l.opts.MaxBytes <= 0 {
		l.opts.MaxBytes = DefaultMaxBytes
	}
	if l.opts.Now == nil {
		l.opts.Now = time.Now
	}
	l.file = file{path: path, max: l.opts.MaxBytes, now: l.opts.Now, disk: realDisk{}}
	if err := l.file.open(); err != nil {
		return nil, lathe.CodeUnavailable.Wrap("audit: open", err)
	}
	return l, nil
}

// Event writes a line for an event of a run; deltas are ignored. It can be used as engine.Options.Audit.
func (l *Log) Event(ctx context.Context, run *lathe.RunInfo, e event.Event) error {
	if event.IsDelta(e.Data) {
		return nil
	}
	line, err := l.opts.eventLine(run.Principal, &e)
	if err != nil {
		return lathe.CodeInternal.Wrap(opWrite, err)
	}
	return l.add(ctx, line)
}

// Call records that a tool is about to be called. It can be used as tool.Options.Journal.
func (l *Log) Call(ctx context.Context, call *lathe.CallInfo, v lathe.Verdict) error {
	return l.add(ctx, l.opts.callLine(call, v))
}

// Remove records that a caller is about to remove a run from the store; by is the name of the caller's key. It can be used as
// gateway.Options.Removing.
func (l *Log) Remove(ctx context.Context, by string, run *lathe.RunInfo) error {
	return l.add(ctx, &Line{Kind: OfRemoval, Principal: run.Principal, Removed: &Removed{RunID: run.RunID, SessionID: run.SessionID, By: by}})
}

// Change records that an operator is about to change the state of the server.
func (l *Log) Change(ctx context.Context, c *Changed) error {
	return l.add(ctx, &Line{Kind: OfChange, Changed: c})
}

var _ event.Sink = (*Log)(nil)

// maxActors is the largest number of runs of Emit whose principal is stored.
const maxActors = 10_000

// Emit implements [event.Sink], for runs outside of the engine. It returns when the event is on disk. If the write fails, the next Call
// returns an error before the tool is called.
func (l *Log) Emit(ctx context.Context, e event.Event) {
	l.mu.Lock()
	principal := l.actors[e.RunID]
	switch d := e.Data.(type) {
	case *event.RunStarted:
		principal = d.Principal
		if len(l.actors) < maxActors {
			l.actors[e.RunID] = principal
		}
	case *event.RunFinished:
		delete(l.actors, e.RunID)
	default: // the principal does not change
	}
	l.mu.Unlock()
	_ = l.Event(ctx, &lathe.RunInfo{RunID: e.RunID, Principal: principal}, e)
}

const opWrite = "audit: write"

// add writes the line in one batch with the lines of other goroutines: the goroutine that begins a batch writes it, and the others wait.
func (l *Log) add(ctx context.Context, line *Line) error {
	l.mu.Lock()
	b := l.next
	isWriter := b == nil
	if isWriter {
		b = &batch{done: make(chan struct{})}
		l.next = b
	}
	b.lines = append(b.lines, line)
	l.mu.Unlock()
	if isWriter {
		l.write(b)
	}
	select {
	case <-b.done:
	case <-ctx.Done():
		select {
		case <-b.done: // both: what was written counts
		default:
			code := lathe.CodeCancelled
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				code = lathe.CodeTimeout
			}
			return code.Wrap(opWrite, ctx.Err())
		}
	}
	if b.err != nil {
		return lathe.CodeUnavailable.Wrap(opWrite, b.err)
	}
	return nil
}

// write writes the batch when it is the turn of this goroutine. Until then, other goroutines add lines to the batch.
func (l *Log) write(b *batch) {
	l.turn <- struct{}{}
	l.mu.Lock()
	l.next = nil
	l.mu.Unlock()
	b.err = l.file.append(b.lines)
	<-l.turn
	close(b.done)
}

// Head returns the head of the last line that this process wrote, or found when it opened the file.
func (l *Log) Head() Head {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	return l.file.head
}

// Close waits for the write in progress and closes the file. A closed log refuses further lines.
func (l *Log) Close() error {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	return l.file.close()
}
