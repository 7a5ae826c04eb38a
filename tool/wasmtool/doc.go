// Package wasmtool executes WebAssembly modules as tools.
//
// A tool is a module NAME.wasm with a manifest NAME.yaml, .yml or .json in the same folder: see [Manifest]. [Open] opens one module, and
// [OpenFolder] all modules of a folder; both can be reloaded. docs/tools-wasm.md lists what a module must export.
//
// Each call gets an instance in its initial state. After a successful call, the memory of the instance is reset; an instance that failed,
// was stopped or has grown is discarded. A module that violates the memory rules of the ABI ends the run with reason guest_fault.
package wasmtool
