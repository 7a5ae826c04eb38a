package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/config"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/wasmtool"
)

// modules are the WebAssembly modules that a command may call.
type modules struct {
	folder *wasmtool.Folder // nil: none
	cancel context.CancelFunc
	done   chan struct{}
}

// startModules puts the configured modules into the set, now and whenever their files change. They
// are compiled meanwhile; a call waits for its module. close must be called.
func startModules(ctx context.Context, cfg *config.Config, path string, set *tool.Set, log *slog.Logger) (*modules, error) {
	if cfg.Tools.WASM.Dir == "" {
		return &modules{}, nil
	}
	folder, err := wasmtool.OpenFolder(besideConfig(cfg.Tools.WASM.Dir, path), moduleOptions(cfg, path))
	if err != nil {
		return nil, &exitError{exitConfig, err}
	}
	m := &modules{folder: folder}
	if err := set.Replace(wasmtool.Origin, folder.List()); err != nil {
		m.close()
		return nil, &exitError{exitConfig, err}
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

// close ends the modules; no call may run.
func (m *modules) close() {
	if m.cancel != nil {
		m.cancel()
		<-m.done
	}
	if m.folder != nil {
		_ = m.folder.Close() // the command is over
	}
}

// modulesFor is startModules for one call. A call whose name is a file of a module becomes one of its
// tool, which is put into the set alone.
func modulesFor(ctx context.Context, cfg *config.Config, path string, set *tool.Set, log *slog.Logger, call *lathe.ToolCall) (*modules, error) {
	if !strings.HasSuffix(call.Name, ".wasm") {
		return startModules(ctx, cfg, path, set, log)
	}
	folder, err := wasmtool.Open(call.Name, moduleOptions(cfg, path))
	if err != nil {
		return nil, &exitError{exitConfig, err}
	}
	m := &modules{folder: folder}
	if err = folder.Ready(ctx); err == nil {
		err = set.Replace(wasmtool.Origin, folder.List())
	}
	if err != nil {
		m.close()
		return nil, &exitError{exitConfig, err}
	}
	call.Name = folder.List()[0].Spec().Name
	return m, nil
}

// checkModules says what is wrong with the configured modules.
func checkModules(ctx context.Context, cfg *config.Config, path string, set *tool.Set) error {
	m, err := startModules(ctx, cfg, path, set, nil)
	if err != nil {
		return err
	}
	defer m.close()
	if m.folder != nil {
		if err := m.folder.Ready(ctx); err != nil {
			return &exitError{exitConfig, err}
		}
	}
	return nil
}

func moduleOptions(cfg *config.Config, path string) *wasmtool.Options {
	w := &cfg.Tools.WASM
	opts := &wasmtool.Options{Interpreter: w.Interpreter, TotalMemory: int64(w.MaxTotalMemory),
		Most: &wasmtool.Most{Grants: w.Grants, Timeout: w.MaxTimeout, MemoryPages: w.MaxMemory >> 16, ModuleBytes: w.MaxModule}}
	switch {
	case !w.Cache:
	case w.CacheDir != "":
		opts.CacheDir = besideConfig(w.CacheDir, path)
	default:
		if dir, err := os.UserCacheDir(); err == nil {
			dir = filepath.Join(dir, "lathe", "wasm")
			if os.MkdirAll(dir, 0o700) == nil { // else there is no cache
				opts.CacheDir = dir
			}
		}
	}
	return opts
}

// besideConfig returns a path as seen from the configuration file.
func besideConfig(name, path string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(configFile(path)), name)
}
