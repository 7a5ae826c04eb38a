package wasmrt

// MaxStack bounds the stacks of an instance.
const MaxStack = maxStack

// Stack returns the size that the engine's stack of f has when it is called, also after f was given another one.
func (f *Func) Stack() func() int { return callStack{engine: f.stack}.size }
