package wasmrt

import (
	"errors"

	"github.com/tetratelabs/wazero/api"
)

// MaxStack bounds the stacks of an instance.
const MaxStack = maxStack

// Stack returns a function that returns the size of the engine's stack of f in the last call, or that of a call before the first.
func (f *Func) Stack() func() int {
	find := f.find
	last := find()
	f.find = func() api.Function {
		last = find()
		return last
	}
	return func() int { return callStack{engine: stackOf(last)}.size() }
}

// KindOf returns the kind of the first [Error] in err's tree, or 0.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return 0
}
