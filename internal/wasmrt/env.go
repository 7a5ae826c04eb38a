package wasmrt

import (
	"context"
	"io"
	"math/rand/v2"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/sys"
)

// Grants are the resources of the host that a guest may use. The zero value grants none.
type Grants struct {
	Now    func() time.Time // nil: a clock that starts in 2000 and advances with each read
	Random io.Reader        // nil: the same bytes in each instance
	Files  []FileGrant
}

// env is the state of an instance besides its memory: budgets, clock, random source, descriptors.
type env struct {
	limits *Limits
	grants *Grants
	// ctx is the context of the running call. The engine passes none to the sleep function.
	ctx context.Context

	calls callStack

	budget
	files   int    // number of open files
	dirty   bool   // the guest may have changed the meaning of its descriptors
	refused string // the limit for which a request of the guest was refused; "" if none was
	pending *Error // the error with which a host function ends the guest
	ended   *Error // why the guest was stopped: it must not run again
	started time.Time
}

// budget is the part of env that is reset for each use of an instance.
type budget struct {
	hostCalls, outputBytes, fileBytes int64
	reads                             int64 // number of reads of the clock
	slept                             time.Duration
	random                            rand.ChaCha8
	usedRandom                        bool // a granted random source was read
	created                           int  // number of files and folders created
}

func newEnv(limits *Limits, grants *Grants) *env {
	e := &env{limits: limits, grants: grants, ctx: context.Background()}
	e.budget = budget{hostCalls: limits.HostCalls, outputBytes: limits.StdoutBytes, fileBytes: limits.FileBytes,
		random: *rand.NewChaCha8([32]byte{})}
	return e
}

// halt ends the guest from within a host function, with err. It panics.
func (e *env) halt(err *Error) {
	e.pending = err
	panic(err)
}

// check ends the guest if ctx has ended, or if the guest was stopped in a nested call.
func (e *env) check(ctx context.Context) {
	if e.ended == nil && ctx.Err() != nil {
		e.ended = stopped(ctx)
	}
	if e.ended != nil {
		e.halt(e.ended)
	}
}

func (e *env) hostCall() {
	e.check(e.ctx)
	if e.hostCalls--; e.hostCalls < 0 {
		e.halt(overLimit("host_calls", "more than %d calls to the host", e.limits.HostCalls))
	}
}

func (e *env) useFile(n int64) {
	if e.fileBytes -= n; e.fileBytes < 0 {
		e.halt(overLimit("file_bytes", "more than %d bytes read and written", e.limits.FileBytes))
	}
}

// countCreated counts a file or folder before it is created.
func (e *env) countCreated() {
	if e.created++; e.created > e.limits.NewFiles {
		e.halt(overLimit("new_files", "more than %d files and folders made", e.limits.NewFiles))
	}
}

// A limitedWriter is standard output or standard error of the guest. Both share one budget.
type limitedWriter struct {
	env *env
	to  io.Writer // nil: output is discarded
}

// Write ends the guest if p exceeds the budget, after writing the part of p that fits.
func (w *limitedWriter) Write(p []byte) (int, error) {
	fits := min(int64(len(p)), w.env.outputBytes)
	w.env.outputBytes -= fits
	if w.to != nil && fits > 0 {
		if _, err := w.to.Write(p[:fits]); err != nil {
			return 0, err
		}
	}
	if fits < int64(len(p)) {
		w.env.halt(overLimit("stdout_bytes", "more than %d bytes of output", w.env.limits.StdoutBytes))
	}
	return len(p), nil
}

const firstSecond = 946684800 // 2000-01-01, the start of time without a granted clock

// The maximal time that passes for a guest without a granted clock: in one sleep, and in all together.
const (
	longestSleep = 365 * 24 * time.Hour
	mostSlept    = 100 * longestSleep
)

// tick returns the time since firstSecond for a guest without a granted clock, and advances it by a millisecond.
func (e *env) tick() time.Duration {
	e.reads++
	return time.Duration(e.reads)*time.Millisecond + e.slept
}

func (e *env) walltime() (sec int64, nsec int32) {
	if e.grants.Now != nil {
		t := e.grants.Now()
		return t.Unix(), int32(t.Nanosecond())
	}
	d := e.tick()
	return firstSecond + int64(d/time.Second), int32(d % time.Second)
}

func (e *env) nanotime() int64 {
	if e.grants.Now == nil {
		return int64(e.tick())
	}
	return int64(e.grants.Now().Sub(e.started))
}

// sleep implements the sleep function of the guest, for ns nanoseconds. Without a granted clock it returns at once.
func (e *env) sleep(ns int64) {
	d := time.Duration(max(ns, 0))
	if e.grants.Now == nil {
		e.slept = min(e.slept+min(d, longestSleep), mostSlept)
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-e.ctx.Done():
		e.check(e.ctx)
	}
}

// Read fills p with random bytes from the granted source, or from a generator with a fixed seed.
func (e *env) Read(p []byte) (int, error) {
	var from io.Reader = &e.random
	if e.grants.Random != nil {
		e.usedRandom = true
		from = e.grants.Random
	}
	for done := 0; done < len(p); {
		e.check(e.ctx)
		n, err := io.ReadFull(from, p[done:min(done+chunkBytes, len(p))])
		if done += n; err != nil {
			return done, err
		}
	}
	return len(p), nil
}

// config returns the configuration of the engine for an instance with env e.
func (e *env) config(stdout, stderr io.Writer) wazero.ModuleConfig {
	if e.grants.Now != nil {
		e.started = e.grants.Now()
	}
	return wazero.NewModuleConfig().WithName("").WithStartFunctions().
		WithStdout(&limitedWriter{e, stdout}).WithStderr(&limitedWriter{e, stderr}).
		WithRandSource(e).WithNanosleep(e.sleep).
		WithWalltime(e.walltime, sys.ClockResolution(time.Millisecond)).
		WithNanotime(e.nanotime, sys.ClockResolution(time.Millisecond)).
		WithFSConfig(e.mounts())
}
