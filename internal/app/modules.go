package app

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/wasmtool"
)

// Modules are the WebAssembly modules of a configuration. The caller must call Close.
type Modules struct {
	folder *wasmtool.Folder // nil if none exist
	cancel context.CancelFunc
	done   chan struct{}
}

// StartModules adds the tools of tools.wasm to the set, and replaces them whenever their files change. It compiles the modules in the
// background; a call blocks until its module is compiled. log may be nil. If it returns no error, the caller must call Close.
func StartModules(ctx context.Context, cfg *config.Config, set *tool.Set, log *slog.Logger) (*Modules, error) {
	if cfg.Tools.WASM.Dir == "" {
		return &Modules{}, nil
	}
	folder, err := OpenModules(cfg)
	if err != nil {
		return nil, err
	}
	m := &Modules{folder: folder}
	if err := set.Replace(wasmtool.Origin, folder.List()); err != nil {
		m.Close()
		return nil, configError(err)
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	ctx, m.cancel = context.WithCancel(ctx)
	m.done = make(chan struct{})
	go func() {
		defer close(m.done)
		report := func(err error) { log.Warn("WebAssembly modules", "error", err) }
		if err := folder.Ready(ctx); err != nil && ctx.Err() == nil {
			report(err)
		}
		if every := cfg.Tools.WASM.Reload; every > 0 {
			folder.Watch(ctx, every, set.Replace, report)
		}
	}()
	return m, nil
}

// Close closes the modules. No call may be in progress.
func (m *Modules) Close() {
	if m.cancel != nil {
		m.cancel()
		<-m.done
	}
	if m.folder != nil {
		_ = m.folder.Close() // an error has no effect at this point
	}
}

// OpenModules opens the folder tools.wasm.dir. The caller must call Close.
func OpenModules(cfg *config.Config) (*wasmtool.Folder, error) {
	folder, err := wasmtool.OpenFolder(besideConfig(cfg, cfg.Tools.WASM.Dir), ModuleOptions(cfg))
	if err != nil {
		return nil, configError(err)
	}
	return folder, nil
}

// StartModule compiles the module in a file, adds its tool to the set and returns the name of the tool.
func StartModule(ctx context.Context, cfg *config.Config, set *tool.Set, file string) (m *Modules, name string, err error) {
	folder, err := wasmtool.Open(file, ModuleOptions(cfg))
	if err != nil {
		return nil, "", configError(err)
	}
	m = &Modules{folder: folder}
	if err = folder.Ready(ctx); err == nil {
		err = set.Replace(wasmtool.Origin, folder.List())
	}
	if err != nil {
		m.Close()
		return nil, "", configError(err)
	}
	return m, folder.List()[0].Spec().Name, nil
}

// checkModules compiles the configured modules.
func checkModules(ctx context.Context, cfg *config.Config, set *tool.Set) error {
	m, err := StartModules(ctx, cfg, set, nil)
	if err != nil {
		return err
	}
	defer m.Close()
	if m.folder != nil {
		if err := m.folder.Ready(ctx); err != nil {
			return configError(err)
		}
	}
	return nil
}

// ModuleOptions returns the limits of WebAssembly modules and the folder of their compiled code.
func ModuleOptions(cfg *config.Config) *wasmtool.Options {
	w := &cfg.Tools.WASM
	opts := &wasmtool.Options{Interpreter: w.Interpreter, TotalMemory: int64(w.MaxTotalMemory),
		Most: &wasmtool.Most{Grants: w.Grants, Timeout: w.MaxTimeout, MemoryPages: w.MaxMemory >> 16, ModuleBytes: w.MaxModule}}
	if !w.Cache {
		return opts
	}
	if w.CacheDir != "" {
		opts.CacheDir = stateFile(cfg, w.CacheDir)
	} else if dir, err := os.UserCacheDir(); err == nil {
		dir = filepath.Join(dir, "lathe", "wasm")
		if os.MkdirAll(dir, 0o700) == nil { // on error there is no cache
			opts.CacheDir = dir
		}
	}
	return opts
}

// besideConfig returns the absolute form of a path in the configuration, which is relative to the folder of the configuration file.
func besideConfig(cfg *config.Config, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(cfg.Dir(), name)
}

// stateFile returns the path of a file that the program writes, relative to state_dir.
func stateFile(cfg *config.Config, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return besideConfig(cfg, filepath.Join(cfg.StateDir, name))
}
