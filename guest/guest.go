package guest

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/setting"
	"github.com/lathe-run/lathe/internal/wasmrt"
	"github.com/lathe-run/lathe/tool"
)

// Options are the options of [New]. The zero value is usable.
type Options struct {
	// CacheDir is the folder in which compiled code is cached; a missing folder is created. "": compiled code is kept in memory only.
	CacheDir string
	// CompileTimeout is the time limit of the compilation of one module; 0: 60 s. After it, Compile returns an error.
	CompileTimeout time.Duration
	// Interpreter executes modules by interpretation instead of compiling them to machine code. This is much slower, but excludes faults of
	// the compiler.
	Interpreter bool
}

// A Runtime compiles WebAssembly modules to programs. Its methods may be called from several goroutines at once.
type Runtime struct{ rt *wasmrt.Runtime }

// New returns a runtime. opts may be nil. The caller must call Close.
func New(opts *Options) (*Runtime, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	rt, err := wasmrt.New(&wasmrt.Options{CacheDir: o.CacheDir, CompileTimeout: o.CompileTimeout, Interpreter: o.Interpreter,
		Hosts: []wasmrt.HostModule{imports()}})
	if err != nil {
		return nil, err
	}
	return &Runtime{rt}, nil
}

// Close releases all programs of the runtime. No program may be running.
func (r *Runtime) Close() error { return r.rt.Close() }

// A Program is a compiled guest: a WebAssembly module that may ask a [Host] to run models. It may be run by several goroutines at once.
type Program struct {
	module *wasmrt.Module
	limits Limits
	entry  string
}

// Compile checks and compiles a module, which must export _start or main; if it exports both, _start is used. limits apply to each run of
// the program; nil: the defaults. The caller must call [Program.Close] unless it closes the runtime.
func (r *Runtime) Compile(ctx context.Context, wasm []byte, limits *Limits) (*Program, error) {
	p := &Program{}
	if limits != nil {
		p.limits = *limits
	}
	p.limits = p.limits.WithDefaults()
	var err error
	if p.module, err = r.rt.Compile(ctx, wasm, p.limits.runtime()); err != nil {
		return nil, err
	}
	if p.entry, err = entryOf(p.module); err != nil {
		return nil, errors.Join(err, p.module.Close())
	}
	return p, nil
}

// entryOf returns the entry point of a program: `_start`, else `main`, with or without
// the two parameters and the result of C.
func entryOf(m *wasmrt.Module) (string, error) {
	if found, fits := m.Exports("_start", nil, nil); fits {
		return "_start", nil
	} else if found {
		return "", errors.New("guest: _start takes parameters or has results")
	}
	found := false
	for _, params := range [][]wasmrt.ValueType{nil, {wasmrt.I32, wasmrt.I32}} {
		for _, results := range [][]wasmrt.ValueType{nil, i32} {
			exists, fits := m.Exports("main", params, results)
			if fits {
				return "main", nil
			}
			found = found || exists
		}
	}
	if found {
		return "", errors.New("guest: main has another signature than one of C")
	}
	return "", errors.New("guest: the module exports neither _start nor main")
}

// Close releases the program, which must not be running.
func (p *Program) Close() error { return p.module.Close() }

// A FileGrant lets a guest read the files in Root under the path Guest. Neither paths nor links can lead out of Root.
type FileGrant struct {
	Guest string // the path at which the guest sees the files, such as "/data"
	Root  *os.Root
	Write bool // the guest may also create, change, rename and remove files
}

// RunOptions configure one run of a program. The zero value grants the guest nothing.
type RunOptions struct {
	// Stdout and Stderr receive the guest's output; nil: discarded.
	Stdout, Stderr io.Writer
	// Log receives the guest's log lines. level is trace, debug, info, warn or error, and text has at most 16 KiB. Log also receives, with
	// level warn, a line for each function that the guest has registered and that was ignored. nil: discarded.
	Log func(level, text string)
	// Now is the clock that the guest reads; nil: a fake clock that starts in 2000 and advances with each reading.
	Now func() time.Time
	// Random is the source of the guest's random numbers; nil: the same bytes in each run.
	Random io.Reader
	Files  []FileGrant // files that the guest may read or write; nil: none
	// Timeout limits the whole run; 0: 15 min; negative: no limit.
	Timeout time.Duration
	// Principal and Labels are the principal and the labels of the runs that models make for the guest: see [Request].Run.
	Principal string
	Labels    map[string]string
	// Defaults are the limits of a session for which the guest sets none; a zero field means the default in [lathe.Limits]. Caps are the
	// highest limits that the guest may set; a zero field means the value in the struct tag guest of that field of [lathe.Limits]. Only
	// MaxIterations, MaxToolCalls and MaxOutputBytes are used.
	Defaults, Caps lathe.Limits
	// StrictUnknownTool ends each run in which the model calls an unknown tool. If it is false, a session may set it for its own runs.
	StrictUnknownTool bool
	MCP               MCPPolicy // which tools of MCP servers sessions may use
}

// An Outcome says how one run of a program has ended.
type Outcome struct {
	// Code is the exit code of the guest if Reason is answered: the argument of proc_exit, or the result of main. It is 0 if the guest has
	// given no code.
	Code int
	// Reason is answered if the guest exited, guest_fault if it violated a rule or a limit, run_timeout or cancelled if it was stopped, and
	// internal for any other error.
	Reason lathe.Reason
	// Err says why the guest did not exit; nil: it exited.
	Err error
	// Sends is the number of calls of Host.Send, and Usage the sum of the usage of the runs that these calls made. Both are set however the
	// guest ended.
	Sends int
	Usage lathe.Usage
}

// program is the state of one run of a [Program]. Its host functions reach it through the instance.
type program struct {
	host   Host
	opts   RunOptions
	limits *Limits
	inst   *wasmrt.Instance

	fds    fds
	id     string  // id of this run of the program
	ids    int     // number of sessions created so far
	bytes  int     // size of the open sessions and responses, in bytes
	logged int     // size of the log so far, in bytes
	spare  []block // blocks of the guest's allocator that are not in use
	fault  error   // the error with which the guest must end; nil while it may continue
	out    Outcome // the outcome so far
}

// Run runs the program to its end. The outcome is never nil. Run returns only after all goroutines that the guest has caused have ended.
// When ctx is done, the guest is stopped. opts may be nil.
func (p *Program) Run(ctx context.Context, host Host, opts *RunOptions) *Outcome {
	r := &program{host: host, limits: &p.limits, id: "guest_" + strings.ToLower(rand.Text())}
	if opts != nil {
		r.opts = *opts
	}
	r.fds = fds{next: firstFD, open: map[int32]*entry{}, most: p.limits.Descriptors}
	r.opts.Timeout = cmp.Or(r.opts.Timeout, defaultTimeout)
	if r.opts.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.opts.Timeout)
		defer cancel()
	}
	grants := wasmrt.Grants{Now: r.opts.Now, Random: r.opts.Random}
	for _, f := range r.opts.Files {
		grants.Files = append(grants.Files, wasmrt.FileGrant{Guest: f.Guest, Root: f.Root, Write: f.Write})
	}
	inst, err := p.module.Instantiate(ctx, &wasmrt.InstanceOptions{Grants: grants, Stdout: r.opts.Stdout, Stderr: r.opts.Stderr, Data: r})
	if err != nil {
		r.end(ctx, err)
		return &r.out
	}
	r.inst = inst
	r.out.Code, err = r.start(ctx, p.entry)
	r.end(ctx, err)
	if err := inst.Close(); err != nil && r.out.Err == nil {
		r.out.Reason, r.out.Err = lathe.ReasonInternal, err
	}
	return &r.out
}

// start calls the entry point and returns its result, which is 0 if it has none.
func (p *program) start(ctx context.Context, entry string) (code int, err error) {
	fn, err := p.inst.Func(entry)
	if err != nil {
		return 0, err
	}
	stack := make([]uint64, max(fn.Params(), 1))
	if err := fn.Invoke(ctx, stack); err != nil {
		return 0, err
	}
	if fn.Results() > 0 {
		code = int(wasmrt.Int32(stack[0]))
	}
	return code, nil
}

// end sets the outcome of the program; err is the error of its entry point or nil.
func (p *program) end(ctx context.Context, err error) {
	o := &p.out
	var e *wasmrt.Error
	exited := err == nil || errors.As(err, &e) && e.Kind == wasmrt.KindExit
	if exited && p.fault == nil {
		o.Reason = lathe.ReasonAnswered
		if e != nil {
			o.Code = int(int32(e.Code))
		}
		return
	}
	o.Code = 0
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		o.Reason = lathe.ReasonRunTimeout
		o.Err = fmt.Errorf("the guest took longer than %v", p.opts.Timeout)
	case ctx.Err() != nil:
		o.Reason, o.Err = lathe.ReasonCancelled, errors.Join(context.Cause(ctx), err)
	case p.fault != nil:
		o.Reason, o.Err = lathe.ReasonGuestFault, p.fault
	case e != nil: // the guest trapped or exceeded a limit
		o.Reason = lathe.ReasonGuestFault
		o.Err = fmt.Errorf("%w: %w", tool.ErrGuestFault, err)
	default:
		o.Reason, o.Err = lathe.ReasonInternal, err
	}
}

// limitsOf returns the limits that a guest may set: each is the value of the session, else the default, and never above the cap.
func (p *program) limitsOf(s *session) (l lathe.Limits) {
	defaults := p.opts.Defaults.WithDefaults()
	for _, r := range setting.Rows[lathe.Limits]() {
		if r.Guest == 0 {
			continue
		}
		n, own := s.params.limits[r.Key]
		if !own {
			n = r.In(&defaults).Int()
		}
		r.In(&l).SetInt(min(n, cmp.Or(r.In(&p.opts.Caps).Int(), r.Guest)))
	}
	return l
}

// reserve adds n bytes to the size of all sessions. It returns false, and adds nothing, if that would exceed SessionBytes.
func (p *program) reserve(n int) bool {
	if p.bytes+n > p.limits.SessionBytes {
		return false
	}
	p.bytes += n
	return true
}
