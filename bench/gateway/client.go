package main

import (
	"net/http"
	"strings"

	"github.com/lathe-run/lathe/bench/internal/load"
	"github.com/lathe-run/lathe/bench/internal/proxy"
)

func newClient(base, model string, stream bool) *load.Client {
	more, end := "", `"usage"`
	if stream {
		more, end = `,"stream":true,"stream_options":{"include_usage":true}`, "[DONE]"
	}
	return &load.Client{HTTP: &http.Client{Transport: proxy.Transport()}, URL: base + "/v1/chat/completions", Stream: stream, End: end,
		Body: `{"model":"` + model + `","messages":[{"role":"system","content":"You are terse."},{"role":"user","content":"` + strings.Repeat("Say something. ", 20) + `"}]` + more + `}`}
}
