package wasmtool

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/regular"
	"github.com/lathe-run/lathe/internal/wasmrt"
)

// Options configure [Open] and [OpenFolder].
type Options struct {
	// CacheDir is the folder in which compiled modules are cached, as docs/tools-wasm.md describes; "": no cache.
	CacheDir string
	// CompileTimeout is the timeout for the compilation of one module; 0: 60 s.
	CompileTimeout time.Duration
	// Interpreter says that modules are interpreted, not compiled to machine code. That is much slower, but a fault in the compiler has no
	// effect.
	Interpreter bool
	// TotalMemory is the maximum memory in bytes of all module instances together; 0: 1 GiB. A call beyond it ends with execution_failed and
	// a text that names the limit max_total_memory.
	TotalMemory int64
	// Most is the maximum of grants and limits that a manifest may request. A module that requests more is refused; nil: no maximum.
	Most *Most
}

// defaultTotalMemory is the default of Options.TotalMemory, in bytes.
const defaultTotalMemory = 1 << 30

// maxModules is the maximum number of modules in a folder.
const maxModules = 256

// A Folder contains the tools of a folder of WebAssembly modules (at most 256), or of a single module. Its methods may be called from
// several goroutines at once.
type Folder struct {
	dir  string
	only string // file name of the only module; "": all
	rt   *wasmrt.Runtime
	most *Most

	mu    sync.Mutex       // locked by Reload and Close
	tools map[string]*Tool // by file name of the module
	old   []retired
}

// A retired tool was replaced, but runs that began before may still call it.
type retired struct {
	tool *Tool
	at   time.Time
}

// retirement is the time for which a replaced tool can still be called.
const retirement = 15 * time.Minute

// Open loads a single module; its manifest is the file with the same name and the extension .yaml, .yml or .json. opts may be nil. The module
// is compiled in the background: see [Folder.Ready]. On an error nothing is left open; otherwise the caller must call Close.
func Open(file string, opts *Options) (*Folder, error) {
	return open(filepath.Dir(file), filepath.Base(file), opts)
}

// OpenFolder loads all files NAME.wasm in dir, as [Open] does for one. If any module cannot be loaded, it loads none and joins the errors
// of all of them.
func OpenFolder(dir string, opts *Options) (*Folder, error) { return open(dir, "", opts) }

func open(dir, only string, opts *Options) (*Folder, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.TotalMemory == 0 {
		o.TotalMemory = defaultTotalMemory
	}
	rt, err := wasmrt.New(&wasmrt.Options{CacheDir: o.CacheDir, CompileTimeout: o.CompileTimeout, Interpreter: o.Interpreter, TotalMemory: o.TotalMemory})
	if err != nil {
		return nil, err
	}
	f := &Folder{dir: dir, only: only, rt: rt, most: o.Most, tools: map[string]*Tool{}}
	names, err := f.list()
	if err == nil {
		var next map[string]*Tool
		if next, err = f.load(names); err == nil {
			f.tools = next
			return f, nil
		}
	}
	return nil, errors.Join(err, f.Close())
}

func (f *Folder) list() ([]string, error) {
	if f.only != "" {
		return []string{f.only}, nil
	}
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".wasm") && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	if len(names) > maxModules {
		return nil, fmt.Errorf("%s holds more than %d modules", f.dir, maxModules)
	}
	return names, nil
}

// load reads the modules, and reuses tools whose files have not changed. If a module cannot be a tool, it closes the new tools and returns
// the errors.
func (f *Folder) load(names []string) (map[string]*Tool, error) {
	next := map[string]*Tool{}
	var errs []error
	for _, name := range names {
		t, err := f.read(name)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", filepath.Join(f.dir, name), err))
			continue
		}
		next[name] = t
	}
	if len(errs) == 0 {
		return next, nil
	}
	return nil, errors.Join(append(errs, f.closeNew(next))...)
}

func (f *Folder) read(name string) (*Tool, error) {
	file := filepath.Join(f.dir, name)
	if _, err := os.Stat(file); err != nil {
		return nil, err // clearer than an error about a missing manifest
	}
	text, err := readManifest(strings.TrimSuffix(file, ".wasm"))
	if err != nil {
		return nil, err
	}
	m, err := parseManifest(text)
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	if err := f.most.allow(m); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	wasm, err := readAtMost(file, int64(m.Limits.ModuleBytes), "limits.module_bytes")
	if err != nil {
		return nil, err
	}
	sums := [2][sha256.Size]byte{sha256.Sum256(wasm), sha256.Sum256(text)}
	if was := f.tools[name]; was != nil && was.sum == sums {
		return was, nil
	}
	t, err := newTool(f.rt, wasm, m, f.dir)
	if err != nil {
		return nil, err
	}
	t.sum = sums
	return t, nil
}

// readManifest reads the manifest of a module. It returns an error if none exists or more than one.
func readManifest(stem string) (text []byte, err error) {
	found := false
	for _, ext := range []string{".yaml", ".yml", ".json"} {
		b, err := readAtMost(stem+ext, maxManifest, "a manifest")
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		case found:
			return nil, errors.New("there are two manifests beside it")
		default:
			text, found = b, true
		}
	}
	if !found {
		return nil, fmt.Errorf("there is no manifest beside it: %s", filepath.Base(stem)+".yaml")
	}
	return text, nil
}

func readAtMost(file string, limit int64, what string) ([]byte, error) {
	b, err := regular.Read(file, limit)
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("%s is larger than the %d bytes of %s", filepath.Base(file), limit, what)
	}
	return b, err
}

// List returns the current tools, sorted by file name.
func (f *Folder) List() []lathe.Tool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return listed(f.tools)
}

func listed(tools map[string]*Tool) []lathe.Tool {
	var out []lathe.Tool
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		out = append(out, tools[name])
	}
	return out
}

// Tools yields the tools of [Folder.List]. Each range first reloads the folder, as [Folder.Reload] does. If the reload fails, the range
// yields the error and then the previous tools.
func (f *Folder) Tools(ctx context.Context) iter.Seq2[lathe.Tool, error] {
	return func(yield func(lathe.Tool, error) bool) {
		if _, err := f.Reload(ctx, nil); err != nil && !yield(nil, err) {
			return
		}
		for _, t := range f.List() {
			if !yield(t, nil) {
				return
			}
		}
	}
}

// Ready blocks until all modules are compiled or ctx is done. It joins the errors of modules that do not compile.
func (f *Folder) Ready(ctx context.Context) error {
	f.mu.Lock()
	tools := f.tools
	f.mu.Unlock()
	return ready(ctx, tools)
}

func ready(ctx context.Context, tools map[string]*Tool) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		if err := tools[name].Ready(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// Reload reads the folder again. If a module or manifest has changed, it compiles the changed modules, blocks until they are compiled, and
// calls use, which may be nil, with all tools. If this fails or use returns an error, changed is false and the previous tools remain in
// use. If changed is true, the new tools are in use; an error then means that a tool that was replaced earlier could not be closed. Reload
// does not interrupt calls in progress. Runs that have begun may call a replaced tool for another 15 minutes. use must not call methods of
// f.
func (f *Folder) Reload(ctx context.Context, use func(origin string, tools []lathe.Tool) error) (changed bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	gone := f.closeRetired()
	names, err := f.list()
	if err != nil {
		return false, errors.Join(err, gone)
	}
	next, err := f.load(names)
	if err != nil {
		return false, err
	}
	if maps.Equal(next, f.tools) {
		return false, nil
	}
	err = ready(ctx, next)
	if err == nil && use != nil {
		err = use(Origin, listed(next))
	}
	if err != nil {
		return false, errors.Join(err, gone, f.closeNew(next))
	}
	for name, t := range f.tools {
		if next[name] != t {
			f.old = append(f.old, retired{t, time.Now()})
		}
	}
	f.tools = next
	return true, gone
}

// closeNew closes the tools that are not in use.
func (f *Folder) closeNew(next map[string]*Tool) error {
	var errs []error
	for name, t := range next {
		if f.tools[name] != t {
			errs = append(errs, t.Close())
		}
	}
	return errors.Join(errs...)
}

// closeRetired closes the replaced tools whose retirement time has passed.
func (f *Folder) closeRetired() error {
	var errs []error
	f.old = slices.DeleteFunc(f.old, func(r retired) bool {
		if time.Since(r.at) < retirement {
			return false
		}
		errs = append(errs, r.tool.Close())
		return true
	})
	return errors.Join(errs...)
}

// Watch calls [Folder.Reload] at the interval every, which must be above 0, and blocks until ctx is done. It passes errors to report, on its
// own goroutine; report may be nil.
func (f *Folder) Watch(ctx context.Context, every time.Duration, use func(origin string, tools []lathe.Tool) error, report func(error)) {
	tick := time.Tick(every)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
			if _, err := f.Reload(ctx, use); err != nil && report != nil && ctx.Err() == nil {
				report(err)
			}
		}
	}
}

// Close closes all tools and releases the compiled modules. No call may be in progress.
func (f *Folder) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	for _, t := range f.tools {
		errs = append(errs, t.Close())
	}
	for _, r := range f.old {
		errs = append(errs, r.tool.Close())
	}
	f.tools, f.old = map[string]*Tool{}, nil
	return errors.Join(append(errs, f.rt.Close())...)
}
