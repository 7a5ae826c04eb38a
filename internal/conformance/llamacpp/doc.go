// Package llamacpp runs Lathe against the real server of llama.cpp. Its models are scripted: a mark in the prompt chooses
// what the model writes, and the server tokenises, renders its template, samples, parses and streams as it always does.
//
// The server is not part of the project. It is found at $LATHE_SHARED/tools/llamacpp, else in ../shared/tools/llamacpp beside the
// module; the tests are skipped where it is absent or does not run. Each template is tried in one of three modes (native calls, the model's
// dialect, auto) with the marks that matter most; `go test ./llamacpp -full` tries all, which takes some ten minutes on two cores.
package llamacpp
