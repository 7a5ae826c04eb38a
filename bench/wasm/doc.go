// Package wasm measures what a call of a sandboxed tool costs, 1 KiB in and 1 KiB out: the bare
// engine, ours with each safety on, a tool behind a pipe, and Extism.
//
//	cd bench/wasm && go test -bench . -benchtime 300ms
package wasm
