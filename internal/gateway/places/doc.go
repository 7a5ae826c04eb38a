// Package places finds the place in a client's request of a part of the conversation that its model receives. Models receive a conversation
// in the internal form, in which errors and lists of omitted parts name paths; a client needs the path in its own request. The codecs do
// not record places, since few requests need them. The package walks the body and the messages of the run in parallel: parts of one class
// have the same order in both.
//
// Package server calls it for problems and for the object `lathe` of an answer. It has no state.
package places
