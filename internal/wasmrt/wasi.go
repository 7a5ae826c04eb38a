package wasmrt

import (
	"context"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// pureWASI are the functions of WASI without effects, or whose effects a restored instance does not show. An instance that calls another
// function is not reused.
var pureWASI = map[string]bool{
	"args_get": true, "args_sizes_get": true, "environ_get": true, "environ_sizes_get": true,
	"clock_res_get": true, "clock_time_get": true, "random_get": true, "sched_yield": true, "poll_oneoff": true,
	"fd_write": true, "fd_fdstat_get": true, "fd_filestat_get": true, "fd_prestat_get": true, "fd_prestat_dir_name": true,
}

// addWASI adds WASI preview 1, with a listener for each function, because the engine's own functions cannot be wrapped.
func (r *Runtime) addWASI(ctx context.Context) error {
	names := map[string]bool{}
	watched := experimental.WithFunctionListenerFactory(ctx, experimental.FunctionListenerFactoryFunc(
		func(def api.FunctionDefinition) experimental.FunctionListener {
			name := def.Name()
			for _, n := range def.ExportNames() {
				names[n] = true
				name = n
			}
			return &wasiWatch{pure: pureWASI[name], renumber: name == "fd_renumber"}
		}))
	if _, err := wasi_snapshot_preview1.NewBuilder(r.engine).Instantiate(watched); err != nil {
		return err
	}
	r.imports[wasi_snapshot_preview1.ModuleName] = names
	return nil
}

// wasiWatch is the listener of one function of WASI.
type wasiWatch struct{ pure, renumber bool }

// Before counts the call and records whether the instance can still be restored. It may end the guest.
func (w *wasiWatch) Before(ctx context.Context, _ api.Module, _ api.FunctionDefinition, params []uint64, _ experimental.StackIterator) {
	inst := instanceOf(ctx)
	inst.env.hostCall()
	if !w.pure {
		inst.env.dirty = true
	}
	// The engine allocates memory for all descriptors below the requested one.
	if w.renumber && (uint32(params[0]) >= maxFD || uint32(params[1]) >= maxFD) {
		inst.env.halt(overLimit("open_files", "a descriptor is above %d", maxFD))
	}
}

func (*wasiWatch) After(context.Context, api.Module, api.FunctionDefinition, []uint64) {}
func (*wasiWatch) Abort(context.Context, api.Module, api.FunctionDefinition, error)    {}
