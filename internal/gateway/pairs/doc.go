// Package pairs matches calls and results in the messages of a conversation: which result belongs to which call, whether each call has a
// result ([Check]), and the conversation that follows if the server and its client each have part of the results ([Join]).
//
// Package server calls it for conversations of clients and for logs of runs. It has no state and does not modify the messages it is given.
package pairs
