package wasmrt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/lathe-run/lathe/internal/text"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// Options of a [Runtime].
type Options struct {
	// CacheDir keeps compiled code, by the digest of the module. It is made where it is missing, for
	// its owner alone; one that others may write to is refused, since what it holds is executed.
	// Empty: compiled code is kept in memory only.
	CacheDir string
	// Hosts are the modules that guests may import from, besides WASI.
	Hosts []HostModule
	// CompileTimeout bounds the compilation of one module; 60 s.
	CompileTimeout time.Duration
	// Interpreter does without machine code: slower by far, and one thing less to trust.
	Interpreter bool
	// TotalMemory bounds the memory of all instances together, in bytes; 0: no bound.
	TotalMemory int64
	// NoDeadline says that guests are trusted to return: they run a little faster, and cannot be stopped.
	NoDeadline bool
}

// A Runtime compiles modules. It may be used by several goroutines at once.
type Runtime struct {
	engine  wazero.Runtime
	cache   wazero.CompilationCache // nil: none
	timeout time.Duration
	metered bool
	imports map[string]map[string]bool // what guests may import
	account account
}

// New returns a runtime with its host modules in place. It panics when a host function is declared
// twice or takes what WebAssembly has not.
func New(opts *Options) (*Runtime, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.CompileTimeout == 0 {
		o.CompileTimeout = time.Minute
	}
	cfg := wazero.NewRuntimeConfig()
	if o.Interpreter {
		cfg = wazero.NewRuntimeConfigInterpreter()
	}
	// The memory limit of each module is kept by its allocator, so that reaching it is noticed.
	// The engine's own way to stop a guest checks at loops alone, and costs more: see meter.go.
	cfg = cfg.WithCoreFeatures(api.CoreFeaturesV2).WithDebugInfoEnabled(false).WithMemoryLimitPages(65_536)
	r := &Runtime{timeout: o.CompileTimeout, metered: !o.NoDeadline, imports: map[string]map[string]bool{}, account: account{most: o.TotalMemory}}
	if o.CacheDir != "" {
		if err := privateDir(o.CacheDir); err != nil {
			return nil, fmt.Errorf("wasm: cache of compiled modules: %w", err)
		}
		cache, err := wazero.NewCompilationCacheWithDir(o.CacheDir)
		if err != nil {
			return nil, fmt.Errorf("wasm: cache of compiled modules: %w", err)
		}
		r.cache = cache
		cfg = cfg.WithCompilationCache(cache)
	}
	ctx := context.Background()
	r.engine = wazero.NewRuntimeWithConfig(ctx, cfg)
	if err := errors.Join(r.addMeter(ctx), r.addHosts(ctx, o.Hosts)); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// Close closes all modules and instances. Nothing of the runtime may be in use.
func (r *Runtime) Close() error {
	err := r.engine.Close(context.Background())
	if r.cache != nil {
		err = errors.Join(err, r.cache.Close(context.Background()))
	}
	return err
}

// privateDir makes a folder that only its owner writes to, or says that it is not one.
func privateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s may be written to by others: what it holds is executed", dir)
	}
	return nil
}

// Compile checks a module and compiles it, from the cache where it is there. limits may be nil. It
// takes seconds for large modules: do it ahead of the calls. The error is an *[Error].
func (r *Runtime) Compile(ctx context.Context, wasm []byte, limits *Limits) (m *Module, err error) {
	m = &Module{rt: r}
	if limits != nil {
		m.limits = *limits
	}
	m.limits = m.limits.WithDefaults()
	if len(wasm) > m.limits.ModuleBytes {
		return nil, overLimit("module_bytes", "the module has %d bytes, and at most %d are taken", len(wasm), m.limits.ModuleBytes)
	}
	bin, err := m.shape.read(wasm, &m.limits, r.metered)
	if err != nil {
		return nil, err
	}
	for _, im := range m.shape.imports {
		switch known, ok := r.imports[im.module]; {
		case im.kind != 0:
			return nil, invalid("it imports %q.%q, which is no function: only functions can be imported", clip(im.module), clip(im.name))
		case !ok:
			return nil, invalid("it imports from %q, which is not there", clip(im.module))
		case !known[im.name]:
			return nil, invalid("it imports %q.%q, which is not there", clip(im.module), clip(im.name))
		}
	}
	work, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	defer func() {
		if recover() != nil { // the engine met a module that it does not expect
			m, err = nil, invalid("it cannot be compiled")
		}
	}()
	// With one worker the engine would not look at the context between functions.
	m.code, err = r.engine.CompileModule(experimental.WithCompilationWorkers(work, 2), bin)
	switch {
	case err == nil:
		return m, nil
	case ctx.Err() != nil:
		return nil, stopped(ctx)
	case work.Err() != nil:
		return nil, overLimit("compile_timeout", "compiling takes longer than %v", r.timeout)
	}
	return nil, &Error{Kind: KindInvalid, Err: errors.New(clip(err.Error()))}
}

// clip shortens text of a module for an error.
func clip(s string) string { return text.Cut(s, 200) }
