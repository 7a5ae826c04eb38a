// Command public measures gateways by the method of ENTERPILOT/ai-gateway-reproducible-benchmark, whose results are public: six variants (chat
// completions, Responses and Messages, whole and streamed) with ten requests at once, a sweep over 1 to 256 connections, the start until the first
// answer, and memory. One gateway runs at a time, in an order that differs by round, and shares the machine's cores with the clients and a model
// server that answers at once. A seventh variant has one call of a tool of the gateway, which the method does not have.
//
// It downloads nothing and has no code of the method's own programs, so that the figures are comparable with each other and not with the
// published ones. Peers are measured if they are given:
//
//	go run ./public -gomodel gomodel -portkey node_modules/@portkey-ai/gateway/build/start-server.js
//
// gomodel is the program that `go build ./cmd/gomodel` makes of github.com/ENTERPILOT/GoModel; Portkey is the package @portkey-ai/gateway of npm, and
// needs Node.js.
package main
