package uistream

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// Finish reasons of the AI SDK.
const (
	finishStop      = "stop"
	finishLength    = "length"
	finishFilter    = "content-filter"
	finishToolCalls = "tool-calls"
	finishError     = "error"
	finishOther     = "other"
)

const (
	interruptedText    = "The call was interrupted before its result was known."
	interruptedContent = `{"ok":false,"error":{"code":"interrupted","message":"` + interruptedText + `"}}`
)

// ending returns how the stream ends, from the last run_finished or run_paused event.
func (e *Encoder) ending() ending {
	end := ending{head: &e.head}
	switch {
	case e.finished != nil:
		f := e.finished
		end.reason, end.usage, end.turns, end.calls = f.Reason, f.Usage, f.Turns, f.ToolCalls
		end.code = f.ErrorCode
	case e.paused != nil:
		end.reason = e.paused.Reason
	default:
		end.reason = lathe.ReasonInterrupted
	}
	end.finish = finishOf(end.reason)
	end.aborted = end.reason == lathe.ReasonCancelled
	if end.finish == finishError && !end.aborted {
		end.failure = failureText(end.reason)
	}
	end.code = cmp.Or(end.code, string(end.reason))
	return end
}

func finishOf(r lathe.Reason) string {
	switch r {
	case lathe.ReasonAnswered, lathe.ReasonEmptyAnswer:
		return finishStop
	case lathe.ReasonClientToolCalls, lathe.ReasonAwaitingApproval, lathe.ReasonAwaitingToolResults:
		return finishToolCalls
	case lathe.ReasonLength:
		return finishLength
	case lathe.ReasonContentFilter:
		return finishFilter
	case lathe.ReasonMaxIterations, lathe.ReasonMaxToolCalls, lathe.ReasonToolLoop, lathe.ReasonRunTimeout, lathe.ReasonBudgetExceeded:
		return finishOther
	default: // the run failed, was cancelled or broke off
		return finishError
	}
}

// failureText returns the text that users see for a failed run. It is fixed, because error texts of model servers are meant for the
// operator.
func failureText(r lathe.Reason) string {
	switch r {
	case lathe.ReasonUpstreamError:
		return "provider_unavailable: the model server failed or cannot be reached"
	case lathe.ReasonNoToolCalls:
		return "no_tool_calls: the model answered without using a tool, where one is required"
	case lathe.ReasonInvalidAnswer:
		return "invalid_answer: the answer does not match the JSON Schema that was asked for"
	case lathe.ReasonToolError:
		return "tool_error: a tool failed, where none may"
	case lathe.ReasonUnknownTool:
		return "unknown_tool: the model asked for a tool that there is not"
	case lathe.ReasonGuestFault:
		return "guest_fault: a guest program broke the rules of its memory"
	case lathe.ReasonBudgetExhausted:
		return "budget_exhausted: the budget of this key or of its group does not admit another model call"
	case lathe.ReasonInterrupted:
		return "interrupted: the run broke off"
	default: // of all other reasons, only internal is a failure
		return "internal: the run failed"
	}
}

// AppendFailure ends an open stream with an error. code must consist of a-z, 0-9 and _, and text must not depend on content.
func (e *Encoder) AppendFailure(dst []byte, code lathe.Code, text string) []byte {
	return e.write(dst, func() {
		e.begin(&event.Event{})
		e.closeBlock()
		e.interrupt(func(*call) bool { return true })
		e.closeStep()
		e.ended = true
		e.w.end(&ending{head: &e.head, reason: lathe.ReasonInternal, finish: finishError, failure: string(code) + ": " + text, code: string(code)})
	})
}

// maxName bounds the names of tools in a stream, as the limits of requests do. They consist of nameCharacters.
const (
	maxName        = 64
	nameCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."
)

// shownName returns the registered name of a tool, otherwise the model's name for it if that is valid, otherwise `unknown`.
func shownName(registered, raw string) string {
	if registered != "" && registered != "unknown" {
		return registered
	}
	raw = strings.TrimSpace(raw)
	if raw == "" || len(raw) > maxName || strings.Trim(raw, nameCharacters) != "" {
		return "unknown"
	}
	return raw
}

// isJSON reports whether s is one strict JSON value, and isObject whether it is a JSON object.
func isJSON(s string) bool { return rawjson.Check([]byte(s), rawjson.Limits{}) == nil }

func isObject(s string) bool { return isJSON(s) && s[rawjson.SkipSpace([]byte(s), 0)] == '{' }

// inputValue returns arguments as a value: an object unchanged, blank text as {}, and other text as a string, so that later requests
// return it byte for byte.
func inputValue(args string) wire.JSON {
	switch {
	case strings.TrimSpace(args) == "":
		return wire.ObjectOf()
	case isObject(args) && finite(args):
		return rawjson.AppendCompact(nil, []byte(args))
	}
	return wire.Quoted(args)
}

// outputValue returns a result as a value: JSON unchanged, and other text as a string. A JSON string is quoted again, so that later
// requests return it unchanged.
func outputValue(content string) wire.JSON {
	if isJSON(content) && content[rawjson.SkipSpace([]byte(content), 0)] != '"' && compact(content) && finite(content) {
		return wire.JSON(content)
	}
	return wire.Quoted(content)
}

// compact reports whether s has no white space between its tokens. JSON with white space is sent as a string, so that requests return it
// byte for byte.
func compact(s string) bool { return len(rawjson.AppendCompact(nil, []byte(s))) == len(s) }

// finite reports whether JavaScript can represent each number in a JSON text.
func finite(s string) bool {
	var v any
	return json.Unmarshal([]byte(s), &v) == nil
}

// errorText returns the text that a page shows for a failed call: `code: message`, from which requests restore the model's error object, or
// the object itself if it has more members.
func errorText(o *outcome) string {
	if o.content == "" || o.code != "" && o.content == plainError(string(o.code), o.message) {
		return string(o.code) + ": " + o.message
	}
	return o.content
}

// plainError returns the error object that models receive for a failure without details.
func plainError(code, message string) string {
	return string(wire.ObjectOf("ok", false, "error", wire.ObjectOf("code", code, "message", message)))
}

func blobURL(b *lathe.Blob) string {
	if b.URL != "" {
		return b.URL
	}
	if len(b.Data) == 0 {
		return ""
	}
	return "data:" + mediaType(b) + ";base64," + base64.StdEncoding.EncodeToString(b.Data)
}

func mediaType(b *lathe.Blob) string {
	if b.MediaType != "" {
		return b.MediaType
	}
	if rest, ok := strings.CutPrefix(b.URL, "data:"); ok {
		if i := strings.IndexAny(rest, ";,"); i > 0 {
			return rest[:i]
		}
	}
	return "application/octet-stream"
}

// clip shortens a text to at most n characters by replacing its middle with a note of how many are omitted. If n is 0, it does not shorten.
func clip(s string, n int) string {
	if n <= 0 || len(s) <= n {
		return s
	}
	runes := []rune(s)
	if len(runes) <= n {
		return s
	}
	mark := "\n[… " + strconv.Itoa(len(runes)-n) + " characters or more were left out …]\n"
	room := max(n-len([]rune(mark)), 0)
	head := room * 3 / 4
	return string(runes[:head]) + mark + string(runes[len(runes)-(room-head):])
}
