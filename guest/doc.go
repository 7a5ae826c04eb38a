// Package guest runs WebAssembly programs that have conversations with a model.
//
// A guest imports the module `spear`: it opens sessions, writes messages, registers its own functions as tools, sends, and reads the
// answers. docs/internals/guest-abi.md describes every call. The package handles memory, descriptors and error numbers; a [Host] executes each send
// as one run, with its policy, limits, redaction and events. [NewHost] returns the host of a model:
//
//	host, err := guest.NewHost(model, nil)
//	rt, err := guest.New(nil)
//	program, err := rt.Compile(ctx, wasm, nil)
//	outcome := program.Run(ctx, host, &guest.RunOptions{Stdout: os.Stdout})
//
// The functions of a guest are tools like any other. They reach the host as [lathe.Tool] values in
// the [Request], and only its runner calls them. They declare no effect, so a policy that decides by effect,
// such as policy.Default(), withholds them. A [LoopHost] presents them to its policy as tools that only read.
//
// # Faults
//
// A function that traps, has the wrong signature or returns a negative number fails its call, with
// that number as `rc`, and the conversation continues. If a guest accesses memory out of bounds,
// cannot allocate memory, or is stopped by a deadline, the active run and the program end with the
// reason guest_fault.
//
// # Isolation
//
// Each [Program.Run] has its own memory, descriptors, sessions, clock and random numbers. Guests
// have no files, no time of day and no randomness unless granted, and never a network.
package guest
