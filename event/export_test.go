package event

import "reflect"

// Content returns the form of an event's content, a pointer to a struct of pointers into d; nil: it has none.
func Content(d Data) any { return d.content() }

// Envelope is the form of what is around the data.
var Envelope = reflect.TypeFor[eventJSON]()
