// Package places finds the place in a client's own request of a part of the conversation that its model receives. Models receive a
// conversation in the internal form, and errors and lists of what was left out name places in it; a client needs the place in what it sent. The
// codecs do not record it, since it is needed for few requests: the package walks the body and the messages of the run side by side. Parts of one
// class have the same order in both.
//
// Package server calls it for problems and for the object `lathe` of an answer. It keeps no state.
package places
