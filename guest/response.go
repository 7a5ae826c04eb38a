package guest

import (
	"cmp"
	"encoding/json"
	"errors"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/openai"
)

// Codes of errors that guests receive, in addition to those of package lathe.
const (
	codeCallLimit = "tool_call_limit"
	codeNetwork   = "network_error"
)

// failure returns the JSON body of an error.
func failure(code, message string) []byte {
	return wire.ObjectOf("error", wire.ObjectOf("code", code, "message", message))
}

// refusal returns the body of the answer to a send without a run. It contains the text of err only if its code is invalid_request or
// too_many_tools.
func refusal(err error) []byte {
	code := cmp.Or(lathe.CodeOf(err), lathe.CodeInternal)
	message := "the request could not be sent"
	var e *lathe.Error
	if errors.As(err, &e) && e.Err != nil && (code == lathe.CodeInvalidRequest || code == lathe.CodeTooManyTools) {
		message = e.Err.Error()
	}
	return failure(string(code), message)
}

// answer returns the body of the answer to a send: a chat completion with the model's last message, or an error. before is the number of
// messages at the beginning of the run, and created the time in seconds since 1970.
func answer(r *Reply, auto bool, before int, created int64) []byte {
	res := r.Result
	switch res.Reason {
	case lathe.ReasonAnswered, lathe.ReasonClientToolCalls, lathe.ReasonLength, lathe.ReasonContentFilter, lathe.ReasonNoToolCalls, lathe.ReasonInvalidAnswer, lathe.ReasonEmptyAnswer, lathe.ReasonToolError:
		return completion(r, before, created)
	case lathe.ReasonMaxIterations:
		if !auto { // one turn is what the guest requested
			return completion(r, before, created)
		}
		return failure(codeCallLimit, "exceeded "+keyRounds)
	case lathe.ReasonMaxToolCalls:
		return failure(codeCallLimit, "exceeded "+keyCalls)
	case lathe.ReasonUpstreamError:
		return upstream(res.Err)
	case lathe.ReasonInternal:
		return refusal(res.Err)
	default:
		return failure(string(res.Reason), "the run ended "+string(res.Reason))
	}
}

// upstream returns the body for a failure of the model server, without the server's message.
func upstream(err error) []byte {
	var up *lathe.UpstreamError
	if !errors.As(err, &up) {
		return failure(string(lathe.ReasonUpstreamError), "the model server failed")
	}
	if up.Connect {
		return failure(codeNetwork, "the model server could not be reached")
	}
	return failure(string(lathe.ReasonUpstreamError), "the model server failed: "+up.Error())
}

// completion returns the chat completion with the last assistant message after the first before messages.
func completion(r *Reply, before int, created int64) []byte {
	res := r.Result
	f := &lathe.Finish{Usage: res.Usage, Reason: lathe.FinishStop}
	if n := len(res.Trace); n > 0 {
		f.Reason = res.Trace[n-1].Finish
	}
	if res.Cost > 0 {
		f.ProviderCost = &res.Cost
	}
	for i := len(res.History) - 1; i >= min(before, len(res.History)); i-- {
		if res.History[i].Role == lathe.RoleAssistant {
			f.Message = res.History[i]
			break
		}
	}
	backend := wire.ObjectOf("backend", r.Backend, "model", r.Model)
	return openai.AppendCompletion(nil, &openai.Completion{
		ID: "chatcmpl-" + r.RunID, Model: r.Model, Created: created, Finish: f,
		Extra: []lathe.Member{{Name: "_spear", Value: json.RawMessage(backend)}}, // see docs/internals/guest-abi.md
	})
}

// usage returns the body of GET_METRICS: the tokens of all turns of the send.
func usage(u *lathe.Usage) []byte {
	return wire.ObjectOf("completion_tokens", u.OutputTokens, "prompt_tokens", u.InputTokens, "total_tokens", cmp.Or(u.TotalTokens, u.InputTokens+u.OutputTokens))
}
