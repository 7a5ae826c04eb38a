// Package server serves runs over HTTP: on the APIs of OpenAI (chat completions and Responses), Anthropic (Messages) and
// Google (Gemini), for any of their clients, and on Lathe's own API.
//
// A request to /v1/chat/completions, or to its counterpart on another of these APIs, is one run. The server executes its
// own tools within the run. Chat completions do not show these calls to the client, which reads one continuous stream.
// Calls of tools that the client declared are returned to the client. When the client sends their results, the server
// splices the hidden turns of that run into the conversation. The status line is sent with the first content: a run that
// fails before that gets an HTTP error status, and a run that fails later gets an error within the stream, which then ends.
//
// A request to /api/chat is also one run, streamed in the protocol of a chat page. Such a page receives the calls of the
// server's tools and the requests for approval. It sends a decision in a further request, which resumes the run. The page
// at / is such a page.
//
// A key identifies the caller. It names the models, tools and limits of its callers, which are intersected with those of
// the configuration and those of the request. Every query of the store is restricted to the principal, which is the name of
// the key, except for admin keys. Without keys all clients are the same caller, and the server must listen on a loopback
// address.
//
// [Server] is an http.Handler. [Server.HTTPServer] returns an http.Server for it with the time limits that it needs.
package server
