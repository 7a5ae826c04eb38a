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
	// CacheDir is the folder in which compiled code is stored, by the digest of the module. A missing folder is created with mode 0700. A
	// folder that others may write to is an error, because its content is executed. "": compiled code is kept in memory only.
	CacheDir string
	// Hosts are the modules that guests may import, in addition to WASI.
	Hosts []HostModule
	// CompileTimeout is the timeout of the compilation of one module; 60 s.
	CompileTimeout time.Duration
	// Interpreter executes guests without machine code: much slower, and independent of the correctness of the compiler.
	Interpreter bool
	// TotalMemory limits the memory of all instances together, in bytes; 0: no limit.
	TotalMemory int64
	// NoDeadline is for trusted guests, which certainly return: they are not metered, run a little faster, and cannot be stopped.
	NoDeadline bool
}

// A Runtime compiles modules. It may be used by several goroutines at once.
type Runtime struct {
	engine  wazero.Runtime
	cache   wazero.CompilationCache // nil if there is no cache folder
	timeout time.Duration
	metered bool
	imports map[string]map[string]bool // the functions that guests may import, by module and name
	account account
}

// New returns a runtime with its host modules. opts may be nil. It panics if a host function is declared twice, or has a type that
// WebAssembly does not have.
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
	// The allocator of each module enforces its memory limit, so that the runtime sees when it is reached. The engine's own way to stop a
	// guest checks only at loops, and is slower: see meter.go.
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

// Close closes all modules and instances. None of them may be in use.
func (r *Runtime) Close() error {
	err := r.engine.Close(context.Background())
	if r.cache != nil {
		err = errors.Join(err, r.cache.Close(context.Background()))
	}
	return err
}

// privateDir creates a folder for its owner only. It returns an error if others may write to an existing one.
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

// Compile checks a module and compiles it, or reads its code from the cache. limits may be nil. Large modules take seconds, so compile
// them before they are needed. The error is an *[Error].
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
		case im.kind != externFunc:
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
		if recover() != nil { // the engine panics for some invalid modules
			m, err = nil, invalid("it cannot be compiled")
		}
	}()
	// With one worker the engine would not check the context between functions.
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

// clip shortens text of a module to 200 bytes for an error.
func clip(s string) string { return text.Cut(s, 200) }
