package uistream_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/lathe-run/lathe/internal/sse"
	"github.com/lathe-run/lathe/internal/wire/uistream"
)

// check holds a stream to the rules of its protocol, as its clients do, and says what breaks them.
// An earlier stream has shown the calls in known.
func check(p uistream.Protocol, stream []byte, known ...string) error {
	switch p {
	case uistream.UIMessages, uistream.UIMessagesV5:
		return checkUI(stream, p == uistream.UIMessagesV5, known)
	case uistream.DataStream:
		return checkData(stream)
	case uistream.AssistantTransport:
		return checkTransport(stream)
	case uistream.AGUI:
		return checkAGUI(stream, known)
	}
	return fmt.Errorf("no checker of %s", p)
}

type frame map[string]any

func (f frame) s(key string) string { v, _ := f[key].(string); return v }

// frames reads server-sent events, and whether the stream ended with [DONE].
func frames(stream []byte) (out []frame, done bool, err error) {
	r := sse.NewReader(bytes.NewReader(stream), nil)
	for {
		e, rerr := r.Next()
		if rerr != nil {
			return out, done, err
		}
		if done {
			return nil, true, fmt.Errorf("%q after the end", e.Data)
		}
		if string(e.Data) == "[DONE]" {
			done = true
			continue
		}
		var f frame
		if err := json.Unmarshal(e.Data, &f); err != nil {
			return nil, false, fmt.Errorf("%q: %w", e.Data, err)
		}
		out = append(out, f)
	}
}

// uiKeys are the keys of the parts that the encoder uses, those of the first versions 5 first.
var uiKeys = map[string][2]string{
	"start": {"messageId messageMetadata"}, "start-step": {}, "finish-step": {},
	"text-start": {"id", "providerMetadata"}, "text-delta": {"id delta"}, "text-end": {"id"},
	"reasoning-start": {"id"}, "reasoning-delta": {"id delta"}, "reasoning-end": {"id"},
	"tool-input-start": {"toolCallId toolName"}, "tool-input-delta": {"toolCallId inputTextDelta"},
	"tool-input-available": {"toolCallId toolName input"}, "tool-output-available": {"toolCallId output"},
	"tool-output-error": {"toolCallId errorText"}, "file": {"url mediaType"}, "error": {"errorText"},
	"data-approval": {"id data"}, "finish": {"messageMetadata", "finishReason"}, "abort": {"", "reason"},
	"tool-approval-request": {"!", "approvalId toolCallId"}, "tool-output-denied": {"!", "toolCallId"},
	"data-lathe-progress": {"!", "data transient"}, "data-lathe-executed": {"!", "data transient"}, "data-lathe-file": {"!", "data transient"},
}

func checkUI(stream []byte, strict bool, known []string) error {
	all, done, err := frames(stream)
	if err != nil {
		return err
	}
	open, calls := map[string]bool{}, map[string]string{}
	for _, id := range known {
		calls[id] = "asked"
	}
	step, ended := false, false
	for i, f := range all {
		typ := f.s("type")
		keys, ok := uiKeys[typ]
		if !ok || strict && keys[0] == "!" {
			return fmt.Errorf("frame %d: type %s", i, typ)
		}
		allowed := " type " + keys[0] + " "
		if !strict {
			allowed += keys[1] + " "
		}
		for k := range f {
			if !strings.Contains(allowed, " "+k+" ") {
				return fmt.Errorf("frame %d: %s has %s", i, typ, k)
			}
		}
		for _, k := range strings.Fields(keys[0]) {
			if _, ok := f[k]; !ok && k != "messageMetadata" && k != "!" {
				return fmt.Errorf("frame %d: %s has no %s", i, typ, k)
			}
		}
		if (typ == "start") != (i == 0) || ended {
			return fmt.Errorf("frame %d: %s at that place", i, typ)
		}
		part, verb, _ := strings.Cut(typ, "-")
		id := f.s("id")
		switch {
		case part == "text" || part == "reasoning":
			key := part + id
			switch verb {
			case "start":
				if len(open) > 0 || !step {
					return fmt.Errorf("frame %d: %s while %v are open, in a step: %v", i, typ, open, step)
				}
				open[key] = true
			case "delta", "end":
				if !open[key] {
					return fmt.Errorf("frame %d: %s of %s, which is not open", i, typ, id)
				}
				if verb == "end" {
					delete(open, key)
				}
			}
		case part == "tool":
			call := f.s("toolCallId")
			from := map[string]string{"input-start": "", "input-delta": "streaming", "input-available": "streaming", "approval-request": "available asked",
				"output-available": "available asked", "output-error": "streaming available asked", "output-denied": "asked"}[verb]
			to := map[string]string{"input-start": "streaming", "input-delta": "streaming", "input-available": "available", "approval-request": "asked"}[verb]
			if to == "" {
				to = "over"
			}
			if now := calls[call]; now == "" && from != "" || now != "" && !strings.Contains(" "+from+" ", " "+now+" ") {
				return fmt.Errorf("frame %d: %s of %s, which is %q", i, typ, call, now)
			}
			calls[call] = to
		case typ == "start-step":
			if step || len(open) > 0 {
				return fmt.Errorf("frame %d: a step within another", i)
			}
			step = true
		case typ == "finish-step":
			if !step || len(open) > 0 {
				return fmt.Errorf("frame %d: a step ends, open: %v", i, open)
			}
			step = false
		case typ == "error":
			if step {
				return fmt.Errorf("frame %d: an error within a step", i)
			}
		case typ == "finish", typ == "abort":
			ended = true
			for id, state := range calls {
				if state == "streaming" || state != "over" && f.s("finishReason") != "tool-calls" && !strict {
					return fmt.Errorf("call %s is %s at the end (%v)", id, state, f["finishReason"])
				}
			}
		}
	}
	if !done || !ended || step || len(open) > 0 {
		return fmt.Errorf("done %v, ended %v, step %v, open %v", done, ended, step, open)
	}
	return nil
}

func checkData(stream []byte) error {
	calls := map[string]string{}
	step, ended := false, false
	for i, l := range strings.SplitAfter(string(stream), "\n") {
		if l == "" || l == "\n" {
			continue
		}
		code, raw, ok := strings.Cut(strings.TrimSuffix(l, "\n"), ":")
		var v any
		if err := json.Unmarshal([]byte(raw), &v); !ok || err != nil || !strings.HasSuffix(l, "\n") {
			return fmt.Errorf("line %d: %q: %v", i, l, err)
		}
		if ended {
			return fmt.Errorf("line %d after the end: %q", i, l)
		}
		f, _ := v.(map[string]any)
		id := frame(f).s("toolCallId")
		switch code {
		case "0", "g", "3":
			if _, ok := v.(string); !ok || code != "3" && !step {
				return fmt.Errorf("line %d: %q", i, l)
			}
		case "2":
			if _, ok := v.([]any); !ok {
				return fmt.Errorf("line %d: %q", i, l)
			}
		case "b":
			if calls[id] != "" || id == "" || frame(f).s("toolName") == "" {
				return fmt.Errorf("line %d: %q begins again", i, l)
			}
			calls[id] = "open"
		case "c", "9":
			if calls[id] != "open" {
				return fmt.Errorf("line %d: %q of a call that is %q", i, l, calls[id])
			}
		case "a":
			if calls[id] != "open" {
				return fmt.Errorf("line %d: %q of a call that is %q", i, l, calls[id])
			}
			calls[id] = "over"
		case "f", "e":
			if step == (code == "f") {
				return fmt.Errorf("line %d: %q, in a step: %v", i, l, step)
			}
			step = !step
		case "d":
			ended = true
		case "k":
		default:
			return fmt.Errorf("line %d: %q", i, l)
		}
	}
	if !ended || step {
		return fmt.Errorf("ended %v, step %v", ended, step)
	}
	return nil
}

func checkTransport(stream []byte) error {
	all, done, err := frames(stream)
	if err != nil {
		return err
	}
	var parts []string // "open" or "over", and the type
	step, ended := false, false
	for i, f := range all {
		typ := f.s("type")
		path, _ := f["path"].([]any)
		at := -1
		if len(path) == 1 {
			at = int(path[0].(float64))
		}
		if ended {
			return fmt.Errorf("frame %d: %s after the end", i, typ)
		}
		switch typ {
		case "part-start":
			p, _ := f["part"].(map[string]any)
			parts = append(parts, "open "+frame(p).s("type"))
		case "text-delta", "part-finish", "result", "tool-call-args-text-finish":
			if at < 0 || at >= len(parts) || !strings.HasPrefix(parts[at], "open ") {
				return fmt.Errorf("frame %d: %s of part %d of %v", i, typ, at, parts)
			}
			if (typ == "result" || typ == "tool-call-args-text-finish") && parts[at] != "open tool-call" {
				return fmt.Errorf("frame %d: %s of %s", i, typ, parts[at])
			}
			if typ == "part-finish" {
				parts[at] = "over"
			}
		case "step-start", "step-finish":
			if step == (typ == "step-start") {
				return fmt.Errorf("frame %d: %s, in a step: %v", i, typ, step)
			}
			step = !step
		case "message-finish":
			ended = true
		case "error", "data":
		default:
			return fmt.Errorf("frame %d: %s", i, typ)
		}
	}
	for i, p := range parts {
		if p != "over" {
			return fmt.Errorf("part %d is %s at the end", i, p)
		}
	}
	if !done || !ended || step {
		return fmt.Errorf("done %v, ended %v, step %v", done, ended, step)
	}
	return nil
}

func checkAGUI(stream []byte, known []string) error {
	all, _, err := frames(stream)
	if err != nil {
		return err
	}
	open := map[string]bool{}
	seen := map[string]bool{}
	for _, id := range known {
		seen["TOOL_CALL "+id] = true
	}
	ended := false
	for i, f := range all {
		typ := f.s("type")
		if (typ == "RUN_STARTED") != (i == 0) || ended {
			return fmt.Errorf("frame %d: %s at that place", i, typ)
		}
		i0 := strings.LastIndex(typ, "_")
		noun, verb := typ[:max(i0, 0)], typ[i0+1:]
		key := noun + " " + f.s("messageId") + f.s("toolCallId") + f.s("stepName")
		switch typ {
		case "TEXT_MESSAGE_START", "TOOL_CALL_START", "STEP_STARTED", "REASONING_START", "REASONING_MESSAGE_START":
			if open[key] || seen[key] {
				return fmt.Errorf("frame %d: %s begins again", i, key)
			}
			open[key], seen[key] = true, true
		case "TEXT_MESSAGE_CONTENT", "TOOL_CALL_ARGS", "REASONING_MESSAGE_CONTENT":
			if !open[key] || f.s("delta") == "" {
				return fmt.Errorf("frame %d: %s is not open", i, key)
			}
		case "TEXT_MESSAGE_END", "TOOL_CALL_END", "STEP_FINISHED", "REASONING_END", "REASONING_MESSAGE_END":
			if !open[key] {
				return fmt.Errorf("frame %d: %s is not open", i, key)
			}
			delete(open, key)
		case "TOOL_CALL_RESULT":
			if call := "TOOL_CALL " + f.s("toolCallId"); !seen[call] || open[call] || seen["r"+call] {
				return fmt.Errorf("frame %d: a result of %s", i, call)
			}
			seen["rTOOL_CALL "+f.s("toolCallId")] = true
		case "RUN_FINISHED", "RUN_ERROR":
			ended = true
			if len(open) > 0 {
				return fmt.Errorf("open at the end: %v", open)
			}
		case "RUN_STARTED", "CUSTOM":
		default:
			return fmt.Errorf("frame %d: %s (%s)", i, typ, verb)
		}
	}
	if !ended {
		return fmt.Errorf("no end after %d frames", len(all))
	}
	return nil
}
