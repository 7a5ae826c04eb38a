// Package wasmtool runs WebAssembly modules as tools.
//
// A tool is a module NAME.wasm with a manifest NAME.yaml, .yml or .json beside it: see [Manifest].
// [Open] makes one of them a tool, and [OpenFolder] all of a folder, which it may look at again.
// What a module must export is told in docs/tools-wasm.md.
//
// Each call gets an instance that is as new. The memory of a call that ended well is set back; an
// instance that failed, was stopped or grew is thrown away. A module that breaks the rules of
// memory ends the run with the reason guest_fault.
package wasmtool
