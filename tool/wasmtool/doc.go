// Package wasmtool runs WebAssembly modules as tools.
//
// A tool is a module NAME.wasm with a manifest NAME.yaml, .yml or .json beside it: see [Manifest].
// [Open] makes one of them a tool, and [OpenFolder] all of a folder, which it may look at again.
// docs/tools-wasm.md says what a module must export.
//
// Each call gets an instance in its initial state. After a successful call the memory of the instance is reset; an instance
// that failed, was stopped or has grown is discarded. A module that violates the memory rules of the ABI ends the run with the
// reason guest_fault.
package wasmtool
