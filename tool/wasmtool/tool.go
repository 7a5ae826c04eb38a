package wasmtool

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wasmrt"
)

// Origin is [lathe.ToolSpec].Origin of all tools of this package.
const Origin = "wasm"

// A Tool is a WebAssembly module as a tool. Its methods may be called from several goroutines at once. [Folder] closes the tools that it
// contains.
type Tool struct {
	spec     lathe.ToolSpec
	manifest *Manifest
	sum      [2][sha256.Size]byte // hashes of module and manifest

	ready  chan struct{} // closed when the module is compiled or has failed to compile
	err    error
	module *wasmrt.Module
	pool   *wasmrt.Pool
	abi    abi
	cancel context.CancelFunc

	mu     sync.Mutex
	users  int // number of calls in progress
	closed bool
	roots  []*os.Root
}

// newTool starts to compile a module in the background. dir is the folder of the manifest.
func newTool(rt *wasmrt.Runtime, wasm []byte, m *Manifest, dir string) (*Tool, error) {
	if sum := sha256.Sum256(wasm); m.SHA256 != "" && hex.EncodeToString(sum[:]) != m.SHA256 {
		return nil, fmt.Errorf("sha256: the module is another one: %x", sum)
	}
	l := &m.Limits
	limits := &wasmrt.Limits{ModuleBytes: l.ModuleBytes, Functions: l.Functions, FunctionBytes: l.FunctionBytes, MemoryPages: uint32(l.MemoryPages),
		TableElements: uint32(l.TableElements), HostCalls: int64(l.HostCalls), StdoutBytes: int64(l.StdoutBytes), FileBytes: int64(l.FileBytes), OpenFiles: l.OpenFiles, NewFiles: l.NewFiles}
	ctx, cancel := context.WithCancel(context.Background())
	t := &Tool{manifest: m, ready: make(chan struct{}), cancel: cancel, spec: lathe.ToolSpec{
		Name: m.Name, Description: m.Description, Schema: m.Schema, OutputSchema: m.OutputSchema, Allowlist: m.Allowlist,
		Effect: m.Effect, Timeout: l.Timeout, Concurrency: l.Concurrency, Origin: Origin,
	}}
	inst, err := t.options(dir)
	if err != nil {
		cancel()
		return nil, errors.Join(err, t.closeRoots())
	}
	go func() {
		defer close(t.ready)
		t.err = t.compile(ctx, rt, wasm, limits, inst)
	}()
	return t, nil
}

// options opens the granted folders, and returns the options of instances.
func (t *Tool) options(dir string) (*wasmrt.InstanceOptions, error) {
	g := &t.manifest.Grants
	opts := &wasmrt.InstanceOptions{}
	if g.Clock {
		opts.Grants.Now = time.Now
	}
	if g.Random {
		opts.Grants.Random = rand.Reader
	}
	if len(g.Files) == 0 {
		return opts, nil
	}
	base, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer base.Close() //nolint:errcheck // nothing was written through it
	for i, f := range g.Files {
		root, err := base.OpenRoot(f.Path)
		if err != nil {
			return nil, fmt.Errorf("grants.files[%d].path: %w", i, err)
		}
		t.roots = append(t.roots, root)
		opts.Grants.Files = append(opts.Grants.Files, wasmrt.FileGrant{Guest: f.Guest, Root: root, Write: f.Write})
	}
	return opts, nil
}

func (t *Tool) compile(ctx context.Context, rt *wasmrt.Runtime, wasm []byte, limits *wasmrt.Limits, inst *wasmrt.InstanceOptions) error {
	module, err := rt.Compile(ctx, wasm, limits)
	if err != nil {
		return err
	}
	if t.abi, err = abiOf(module, t.manifest); err != nil {
		return errors.Join(err, module.Close())
	}
	t.module, t.pool = module, module.NewPool(&wasmrt.PoolOptions{Instance: *inst, Prepare: t.abi.prepare})
	return nil
}

// Spec implements [lathe.Tool]: it returns the definition in the manifest.
func (t *Tool) Spec() *lathe.ToolSpec { return &t.spec }

// Ready blocks until the module is compiled or ctx is done. It returns the error of a module that does not compile.
func (t *Tool) Ready(ctx context.Context) error {
	select {
	case <-t.ready:
		return t.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Call implements [lathe.Tool]. It waits for the compilation of the module. After Close, it returns an error of code unavailable.
func (t *Tool) Call(ctx context.Context, args json.RawMessage) (*lathe.Output, error) {
	if !t.begin() {
		return nil, lathe.CodeUnavailable.Errorf("wasmtool: call "+t.spec.Name, "the module is closed")
	}
	defer t.end()
	if err := t.Ready(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, outcome(t.spec.Name, err)
		}
		return nil, lathe.CodeUnavailable.Wrap("wasmtool: call "+t.spec.Name, err)
	}
	inst, err := t.pool.Get(ctx)
	if err != nil {
		return nil, outcome(t.spec.Name, err)
	}
	out, err := t.abi.call(ctx, inst, args)
	if perr := t.pool.Put(inst); err == nil && perr != nil {
		err = perr
	}
	if err != nil {
		return nil, outcome(t.spec.Name, err)
	}
	return out, nil
}

func (t *Tool) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.users++
	return true
}

func (t *Tool) end() {
	t.mu.Lock()
	t.users--
	last := t.closed && t.users == 0
	t.mu.Unlock()
	if last {
		_ = t.free() // Close has returned, so the error cannot be reported
	}
}

// Close rejects further calls. It does not wait for calls in progress: the last of them releases the module. Further calls of Close return
// nil.
func (t *Tool) Close() error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return nil
	}
	t.closed = true
	last := t.users == 0
	t.mu.Unlock()
	if last {
		return t.free()
	}
	return nil
}

func (t *Tool) free() error {
	t.cancel()
	<-t.ready
	var errs []error
	if t.module != nil {
		errs = append(errs, t.pool.Close(), t.module.Close())
	}
	return errors.Join(append(errs, t.closeRoots())...)
}

func (t *Tool) closeRoots() error {
	var errs []error
	for _, r := range t.roots {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}
