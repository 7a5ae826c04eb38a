package wasmrt

import (
	"reflect"

	"github.com/tetratelabs/wazero/api"
)

// The engine enlarges the stack of a guest by copying it into one of twice the size. Go cannot preempt the copy, nor stop the world
// meanwhile. The engine's own limit is 100 MB, of which it copies half at once. Therefore the stack is measured at each tick. Between two
// ticks it grows by a few megabytes at most, because entering a function is charged by the size of its frame: see meter.values.

// maxStack is the maximal size of the stacks of an instance, including those of nested calls, in bytes that the engine reserves. Because
// the engine doubles stacks, at least half of maxStack can be used.
const maxStack = 8 << 20

// A callStack is the stack of the running call, and the total size of the stacks of the calls around it.
type callStack struct {
	engine reflect.Value // the []byte of the engine, whose length is the size; the zero value if the engine limits its stack by frames
	below  int           // total size of the stacks of the calls around this one, in bytes
}

// stackOf returns the stack of a function by reflection, because the engine (wazero 1.12) does not export it.
func stackOf(fn api.Function) reflect.Value {
	v := reflect.Indirect(reflect.ValueOf(fn))
	if v.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	stack := v.FieldByName("stack")
	if !stack.IsValid() || stack.Kind() != reflect.Slice || stack.Type().Elem().Kind() != reflect.Uint8 {
		return reflect.Value{}
	}
	return stack
}

func (s callStack) size() int {
	if !s.engine.IsValid() {
		return s.below
	}
	return s.below + s.engine.Len()
}

// overflow returns an error if the stacks are larger than maxStack.
func (s callStack) overflow() *Error {
	if s.size() <= maxStack {
		return nil
	}
	return overLimit(stackLimit, "the calls of the guest within each other take more than %d MiB of stack", maxStack>>20)
}
