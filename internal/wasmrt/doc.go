// Package wasmrt runs WebAssembly modules that are not trusted, under limits. No other package of the product imports the engine.
//
//	rt, err := wasmrt.New(&wasmrt.Options{CacheDir: dir, Hosts: hosts})
//	module, err := rt.Compile(ctx, wasm, nil)            // once; the work goes to the disk cache
//	inst, err := module.Instantiate(ctx, nil)            // a world of its own: memory, globals, tables
//	res, err := inst.Invoke(ctx, "sum", 7, 35)           // an export by name
//	fn, err := inst.TableFunc(3, []ValueType{I32}, nil)  // a function pointer, its signature checked
//	err = fn.Invoke(ctx, stack)                          // parameters in, results out, no allocation of its own
//	b, err := inst.Memory().Read(ptr, n)                 // bounds-checked; pointers are unsigned
//
// A guest has memory, the functions of the [HostModule]s of its runtime, and WASI preview 1 without
// environment, arguments, input, network and, unless [Grants] allow them, without files, clock and
// random: then time starts at a fixed point and advances by a millisecond each time it is read, and
// random bytes are the same in every instance.
//
// # Limits
//
// Each field of [Limits] is a name in [Error].Limit. What the module declares is checked when it is
// compiled, what it does when it runs. Time is the context's: when it is done, the guest is stopped
// wherever it is, and never runs again. Calls within calls are bounded by the stack that they take
// ("stack").
//
// No guest keeps the process from collecting garbage or running other goroutines: each function is metered, as meter.go
// says.
//
// # Clean instances
//
// A [Pool] gives out instances that are as new: one that was used is put back only when all of its
// state could be restored. Memory is copied back, mutable globals are set back, clock, random
// and budgets start anew. It is thrown away when it trapped, exited or was stopped, when its
// memory grew, when it changed what its WASI descriptors stand for, when its code can change tables
// or drop segments, and when a granted random source was read before the first call.
//
// # Memory
//
// A slice of [Memory.Read] is a view: it is good until the guest runs again or memory is written to.
package wasmrt
