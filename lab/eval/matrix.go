package eval

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
)

// Options configure [Measure], which copies them. The zero value is usable. Record and Replay exclude each other, and ReplayTools requires
// Replay.
type Options struct {
	Trials     int        // runs of each scenario; 0: 1
	Jobs       int        // concurrent runs; 0: 4
	Strategies []Strategy // nil: [Production] only
	Fallbacks  []bool     // nil: false only; true: requests are repeated without tools if the server does not support them
	// Settings take precedence over those of the strategy. The settings of a scenario take precedence over Settings.
	Settings []Setting
	// Timeout limits one run; 0: 5 min. A run beyond it has failed.
	Timeout time.Duration
	// Sampling has the temperature, top_p and seed of scenarios that do not set them. Its other fields are ignored.
	Sampling lathe.Sampling
	// UserModel plays the users of scenarios that have instructions for one; nil: they follow the script of the scenario.
	UserModel *UserModel
	// Dir is the folder for results; "": nothing is written. If it has results and Resume is false, the error is [ErrNotEmpty].
	Dir string
	// Resume continues an evaluation whose results are in Dir. A run in Dir with the same model, scenario and settings is not repeated if
	// it has a score or provoked no mistake. Other runs are repeated; Run.Attempts counts the attempts. A result of another server or of
	// other settings under the same name is an error, and is not overwritten.
	Resume bool
	// Record is a folder in which the requests of each run to its model and tools are recorded, with the answers; "": none. Replay is a
	// folder with such recordings, which are used in place of the model; a request that was not recorded is an error.
	Record, Replay string
	// ReplayTools also takes the results of tools from Replay instead of calling them. A call that was not recorded is an error.
	ReplayTools bool
	// Unguarded says that scenarios run without their guards: everything is allowed, and hidden tools and fields are visible. It shows
	// whether the scenarios can fail.
	Unguarded bool
	// Progress, if not nil, is called after each run, by one goroutine at a time. The evaluation waits for it.
	Progress func(Progress)
	Now      func() time.Time // nil: time.Now
	Log      *slog.Logger     // nil: no log
}

// A Progress is the state of an evaluation after one of its runs.
type Progress struct {
	Done, Total int  // number of runs so far, reused ones included, and of all
	Run         *Run // must not be changed
	Reused      bool // the run was read from Dir and not made
}

// maxDead is the number of consecutive runs of a model that may reach no server, or be refused because of the key, before the remaining
// runs of the model are skipped.
const maxDead = 3

func (o *Options) withDefaults() Options {
	var c Options
	if o != nil {
		c = *o
	}
	if c.Trials == 0 {
		c.Trials = 1
	}
	if c.Jobs == 0 {
		c.Jobs = 4
	}
	if len(c.Strategies) == 0 {
		c.Strategies = []Strategy{Production}
	}
	if len(c.Fallbacks) == 0 {
		c.Fallbacks = []bool{false}
	}
	if c.Timeout == 0 {
		c.Timeout = 5 * time.Minute
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Measure runs each scenario with each target, once for each trial, strategy and fallback of opts, and at most Options.Jobs runs at a time.
// It blocks until all runs have ended. opts may be nil.
//
// The report contains all runs, also those read from Options.Dir, in the order of targets, scenarios, strategies, fallbacks and trials.
// After three consecutive runs of a model that reached no server, or were refused because of the key or the model, the other runs of the
// model are skipped.
//
// A failed run is not an error. If the evaluation cannot be planned, Measure returns an error and a nil report. If writing, recording or
// replaying fails, or if ctx is done, it returns an error and a report of the runs so far.
func Measure(ctx context.Context, suite *Suite, scenarios []*Scenario, targets []Target, opts *Options) (*Report, error) {
	o := opts.withDefaults()
	jobs, err := plan(suite, scenarios, targets, &o)
	if err != nil {
		return nil, err
	}
	b := &bench{opts: &o, runs: make([]*Run, len(jobs)), dead: map[string]int{}}
	if err := b.checkOverwrite(jobs); err != nil {
		return nil, err
	}
	if err := b.prepare(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b.cancel = cancel
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(o.Jobs, len(jobs)) {
		wg.Go(func() {
			for i := range next {
				b.work(ctx, i, jobs[i])
			}
		})
	}
	for i := range jobs {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	wg.Wait()
	rep := &Report{Suite: suite.Name}
	for i, r := range b.runs {
		if r != nil {
			rep.Runs = append(rep.Runs, r)
		} else {
			rep.Skipped = append(rep.Skipped, jobs[i].name)
		}
	}
	if b.err == nil {
		b.err = context.Cause(ctx)
	}
	return rep, b.err
}

// plan returns the runs to make, in the order of the report.
func plan(suite *Suite, scenarios []*Scenario, targets []Target, o *Options) ([]*job, error) {
	if len(scenarios) == 0 || len(targets) == 0 {
		return nil, errors.New("nothing to run: an evaluation wants scenarios and models")
	}
	if o.Record != "" && o.Replay != "" {
		return nil, errors.New("one of recording and replaying")
	}
	if o.ReplayTools && o.Replay == "" {
		return nil, errors.New("tools are replayed from a recording, and none is named")
	}
	var jobs []*job
	names := map[string]bool{}
	for i := range targets {
		for _, sc := range scenarios {
			for _, s := range o.Strategies {
				for _, f := range o.Fallbacks {
					for trial := 1; trial <= o.Trials; trial++ {
						j, err := newJob(suite, &targets[i], sc, trial, s, f, o)
						if err != nil {
							return nil, err
						}
						if names[j.name] {
							return nil, fmt.Errorf("two runs have the file name %s: the models' names are too much alike", j.name)
						}
						names[j.name] = true
						jobs = append(jobs, j)
					}
				}
			}
		}
	}
	return jobs, nil
}

// A bench is the state of one evaluation.
type bench struct {
	opts   *Options
	cancel context.CancelFunc

	mu   sync.Mutex
	runs []*Run // by index of the job; nil: not made
	done int
	dead map[string]int // model → consecutive runs that reached no server, or were refused
	err  error          // first error of the harness
}

func (b *bench) prepare() error {
	for _, dir := range []string{b.opts.Dir, b.opts.Record} {
		if dir != "" {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
		}
	}
	return nil
}

// work makes the run j, with the index i, or takes its stored result.
func (b *bench) work(ctx context.Context, i int, j *job) {
	old := b.stored(j)
	if old != nil && kept(old) && old.Fingerprint == j.run.Fingerprint {
		b.report(i, old, true)
		return
	}
	if ctx.Err() != nil || b.givenUp(j.target.Name) {
		return
	}
	tape := b.tape(j)
	if old != nil {
		j.run.Attempts += max(old.Attempts, 1)
	}
	r, err := j.do(ctx, tape, b.opts.Now, b.opts.Log)
	switch {
	case err != nil:
		b.fail(fmt.Errorf("%s: %w", j.name, err))
		return
	case ctx.Err() != nil:
		return // interrupted: the run has no result
	}
	if err := errors.Join(b.save(j, r), tape.save()); err != nil {
		b.fail(err)
		return
	}
	b.report(i, r, false)
}

// givenUp reports whether the remaining runs of a model are skipped, see maxDead.
func (b *bench) givenUp(model string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.dead[model] >= maxDead
}

func (b *bench) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = err
		b.cancel()
	}
}

// report adds a finished run to the report. reused: it was not made, but read.
func (b *bench) report(i int, r *Run, reused bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.runs[i] = r
	b.done++
	switch r.Class {
	case ClassConnection, classException, ClassAuth, ClassPaymentRequired, ClassForbidden, ClassNotFound: // the next run would probably fail in the same way
		b.dead[r.Model]++
	default:
		b.dead[r.Model] = 0
	}
	if b.opts.Progress != nil {
		b.opts.Progress(Progress{Done: b.done, Total: len(b.runs), Run: r, Reused: reused})
	}
}
