package wasmrt

import (
	"reflect"

	"github.com/tetratelabs/wazero/api"
)

// The engine grows the stack of a guest by copying it into one of twice the size, and Go can neither interrupt the copying nor run
// anything else that needs all goroutines to stop meanwhile. Its own bound is 100 MB, of which it copies half in one piece. The stack
// is therefore measured at each tick. Between two ticks it grows by a few megabytes at most, since entering a function is counted by
// the size of its frame: see meter.values.

// maxStack bounds the stacks of an instance, those of calls within calls included, in bytes as the engine reserves them. Since it
// doubles them, at least half of maxStack can be used.
const maxStack = 8 << 20

// A callStack is the stack of the call that runs, and the size of those that wait for it.
type callStack struct {
	engine reflect.Value // a slice of bytes, whose length is the size; the zero value if the engine bounds its stack by frames
	below  int
}

// stackOf finds the stack of a function, which the engine (wazero 1.12) does not export.
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
