package wasmrt

import (
	"context"
	"io"
	"math/rand/v2"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/sys"
)

// Grants are what a guest may touch of the world. The zero value is nothing.
type Grants struct {
	Now    func() time.Time // nil: a clock that starts in 2000 and counts how often it is read
	Random io.Reader        // nil: the same bytes in each instance
	Files  []FileGrant
}

// env is what an instance has besides its memory: budgets, clock, random.
type env struct {
	limits *Limits
	grants *Grants
	// ctx is that of the call that runs: the engine gives none to a guest that sleeps.
	ctx context.Context

	calls callStack

	budget
	files   int    // open
	dirty   bool   // descriptors may stand for something else now
	refused string // the limit that a request of the guest was refused for
	stop    *Error // why the guest is being ended
	ended   *Error // why it was stopped: it must not run again
	started time.Time
}

// budget is the part of env that starts anew for each use of an instance.
type budget struct {
	hostCalls, stdout, fileBytes int64
	reads                        int64 // of the clock
	slept                        time.Duration
	random                       rand.ChaCha8
	asked                        bool // a granted random source was read
	made                         int  // files and folders
}

func newEnv(limits *Limits, grants *Grants) *env {
	e := &env{limits: limits, grants: grants, ctx: context.Background()}
	e.budget = budget{hostCalls: limits.HostCalls, stdout: limits.StdoutBytes, fileBytes: limits.FileBytes,
		random: *rand.NewChaCha8([32]byte{})}
	return e
}

// halt ends the guest from within a host function.
func (e *env) halt(err *Error) {
	e.stop = err
	panic(err)
}

// check ends the guest if ctx is done, or if it was stopped in a call within this one.
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

func (e *env) useFile(n int) {
	if e.fileBytes -= int64(n); e.fileBytes < 0 {
		e.halt(overLimit("file_bytes", "more than %d bytes read and written", e.limits.FileBytes))
	}
}

// useNew counts a file or folder that is about to be made.
func (e *env) useNew() {
	if e.made++; e.made > e.limits.NewFiles {
		e.halt(overLimit("new_files", "more than %d files and folders made", e.limits.NewFiles))
	}
}

// A limitedWriter is an output of the guest. Both outputs share one budget.
type limitedWriter struct {
	env *env
	to  io.Writer // nil: nowhere
}

// Write ends the guest when the budget is used up; what still fits is written.
func (w *limitedWriter) Write(p []byte) (int, error) {
	fits := min(int64(len(p)), w.env.stdout)
	w.env.stdout -= fits
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

const firstSecond = 946684800 // 2000-01-01, where time starts when there is no clock

// The time that passes for a guest without a clock while it sleeps: once, and in all.
const (
	longestSleep = 365 * 24 * time.Hour
	mostSlept    = 100 * longestSleep
)

// tick is the time since the first second of a guest that has no clock.
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

// sleep passes the time of a guest without a clock at once.
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

// Read fills p with random bytes.
func (e *env) Read(p []byte) (int, error) {
	var from io.Reader = &e.random
	if e.grants.Random != nil {
		e.asked = true
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

// config is the engine's view of e.
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
