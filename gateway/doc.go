// Package gateway serves runs over HTTP: OpenAI's chat completions to any of its clients, and Lathe's
// own API beside it.
//
// A request to /v1/chat/completions is one run. The tools of this server run inside it, unseen, on
// one continuous stream with one lifecycle; calls to tools that the client declared are handed over,
// and what the server did in that run is joined to the conversation again when the client comes
// back with its results. The status line waits for the first thing that can be shown, so a run that
// fails before it is answered with a real status, and one that fails later with an error within the
// stream, which then ends.
//
// A request to /api/chat is one run, too, told in the protocol of a chat page. Such a page sees the calls
// of the server's tools, and answers what a person is asked: the run then goes on in a further request.
// The page at / is one of them.
//
// Who asks is told by a key. A key names the models, tools and limits of its callers; what it names
// is intersected with what there is and with what a request asks for, never united. Every query of
// the store takes the name of the key. Without keys everybody who reaches the address is the same
// caller, and such an address must be of this machine alone.
//
// [Gateway] is an http.Handler. [Gateway.Server] puts it into a server with the time limits it needs.
package gateway
