// Package event defines the events of a run: the envelope [Event], one type for each kind of event ([Data]), and
// [Sink], which receives them in order.
//
// Events are published while a run executes and stored in its log, so a run can be shown, measured and resumed
// from its events alone. Text of arguments, outputs and messages is content: [Event.MarshalData] leaves it out,
// [Event.MarshalJSON] includes it.
package event
