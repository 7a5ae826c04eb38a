// Package guest runs programs that are WebAssembly modules and hold conversations with a model.
//
// A guest imports the module `spear`: it opens sessions, writes messages, registers its own
// functions as tools, sends, and reads the answers. docs/guest-abi.md describes every call. The
// package knows memory, descriptors and numbers of errors; what asks models and calls tools is a
// [Host], which runs each send as one run, under its policy, limits, redaction and events:
//
//	rt, err := guest.New(nil)
//	program, err := rt.Compile(ctx, wasm, nil)
//	outcome := program.Run(ctx, host, &guest.RunOptions{Stdout: os.Stdout})
//
// The functions of a guest are tools like any other. They reach the host as [lathe.Tool] values in
// the [Request], and only its runner calls them.
//
// # Faults
//
// A function that traps, has the wrong signature or returns a number below 0 fails its call, with
// that number as `rc`, and the conversation goes on. A guest that accesses memory out of bounds,
// gets no memory, or is stopped by a deadline is at its end: the run that is under way ends with the
// reason guest_fault, and so does the program.
//
// # Isolation
//
// Each [Program.Run] is a world of its own: memory, descriptors, sessions, clock and random. Guests
// have no files, no time of day and no randomness unless granted, and never a network.
package guest
