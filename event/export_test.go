package event

import "reflect"

// Content returns a pointer to a struct with the JSON form of an event's content, whose fields point into d, or nil without content.
func Content(d Data) any { return d.content() }

// Envelope is the type of the JSON form of an event, around its data and content.
var Envelope = reflect.TypeFor[eventJSON]()
