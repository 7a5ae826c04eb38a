package gateway

import (
	"net/http"
	"strings"

	"github.com/lathe-run/lathe"
)

// held are the members of requests that model servers know and that stay here, although others that this
// server does not know are passed on: with them a client would choose a model, a server, a tool or an account
// that its key does not give it, or have something kept.
var held = map[string]bool{
	"models": true, "route": true, "provider": true, "preset": true, "fallbacks": true, "model_list": true, "custom_llm_provider": true,
	"context_window_fallbacks": true, "context_window_fallback_dict": true, "router_settings_override": true,
	"api_base": true, "base_url": true, "api_key": true, "api_version": true, "organization": true, "user_config": true,
	"extra_body": true, "extra_headers": true, "headers": true, "litellm_metadata": true, "mock_response": true,
	"plugins": true, "mcp_servers": true, "server_tools": true, "web_search_options": true, "web_search": true, "guardrails": true,
	"store": true, "metadata": true, "functions": true, "function_call": true,
}

// shaping are members that only a client who gets the model server's own bytes sees anything of.
var shaping = map[string]bool{"audio": true, "modalities": true, "logprobs": true, "top_logprobs": true}

// sort takes the members of the request that this server does not know: those that are passed on, those that
// have no effect, and the object `lathe`.
func (a *chat) sort(unknown []lathe.Member) (asked []byte) {
	for _, m := range unknown {
		switch {
		case m.Name == "lathe":
			asked = m.Value
		case held[strings.ToLower(m.Name)]:
			a.ignored = append(a.ignored, m.Name)
		default:
			a.passed = append(a.passed, m)
		}
	}
	return asked
}

// pass returns the members that go to the model server.
func (a *chat) pass(relayed bool) []lathe.Member {
	if relayed {
		return a.passed
	}
	var out []lathe.Member
	for _, m := range a.passed {
		if shaping[m.Name] {
			a.ignored = append(a.ignored, m.Name)
		} else {
			out = append(out, m)
		}
	}
	a.passed = out
	return out
}

// maxListed bounds the names of members that an answer lists.
const maxListed = 32

// passedNames are the members that were passed on, for the client to see.
func (a *chat) passedNames() []string {
	var names []string
	for _, m := range a.passed[:min(len(a.passed), maxListed)] {
		names = append(names, m.Name)
	}
	return names
}

func (a *chat) header(h http.Header) {
	h.Set("X-Lathe-Run-Id", a.caller.runID)
	list := func(name string, members []string) {
		for _, m := range members {
			if isToken(m) {
				h.Add(name, m)
			}
		}
	}
	list("X-Lathe-Passed", a.passedNames())
	list("X-Lathe-Ignored", a.ignored[:min(len(a.ignored), maxListed)])
}

// isToken reports whether a name can stand in a header.
func isToken(s string) bool {
	return s != "" && len(s) <= 64 && strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' && r != '.'
	}) < 0
}
