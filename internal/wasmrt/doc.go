// Package wasmrt runs untrusted WebAssembly modules under limits. No other package of the product imports the engine.
//
//	rt, err := wasmrt.New(&wasmrt.Options{CacheDir: dir, Hosts: hosts})
//	module, err := rt.Compile(ctx, wasm, nil)            // once; the work goes to the disk cache
//	inst, err := module.Instantiate(ctx, nil)            // a world of its own: memory, globals, tables
//	res, err := inst.Invoke(ctx, "sum", 7, 35)           // an export by name
//	fn, err := inst.TableFunc(3, []ValueType{I32}, nil)  // a function pointer, its signature checked
//	err = fn.Invoke(ctx, stack)                          // parameters in, results out, no allocation of its own
//	b, err := inst.Memory().Read(ptr, n)                 // bounds-checked; pointers are unsigned
//
// A guest has memory, the functions of the [HostModule]s of its runtime, and WASI preview 1 without environment, arguments, input and
// network. Without [Grants] it also has no files, clock and random source: time starts at a fixed point and advances by a millisecond
// each time it is read, and random bytes are the same in every instance.
//
// # Limits
//
// Each field of [Limits] is a name in [Error].Limit. What the module declares is checked at compile time, and what it does at run time.
// The context limits the time: when it ends, the guest is stopped at any instruction, and never runs again. Nested calls are limited by
// the stack that they use ("stack").
//
// A guest cannot prevent garbage collection or starve other goroutines, because each function is metered: see meter.go.
//
// # Clean instances
//
// A [Pool] returns instances in their initial state. A used instance is put back only if all of its state can be restored: memory is
// copied back, mutable globals are reset, and clock, random bytes and budgets start again. The instance is closed instead if it trapped,
// exited or was stopped, if its memory grew, if it changed the meaning of its WASI descriptors, if its code can change tables or drop
// segments, or if a granted random source was read before the first call.
//
// # Memory
//
// A slice of [Memory.Read] is a view: it is valid until the guest runs again or the memory is written to.
package wasmrt
