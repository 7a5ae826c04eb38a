// Package pairs matches the calls and the results in the messages of a conversation: which calls a message has, which result answers which call, whether
// each call has one ([Check]), and what a conversation is if a server and its client have a part of the results each ([Join]).
//
// Package server calls it for conversations of clients and for logs of runs. It keeps no state, and changes no message that it is given.
package pairs
