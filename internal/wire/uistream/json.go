package uistream

import (
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// str appends `,"name":"value"`, or without the comma right after an opening bracket; nothing for an
// empty value of an optional member.
func str(dst []byte, name, value string) []byte {
	return rawjson.AppendQuote(member(dst, name), value)
}

func optional(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	return str(dst, name, value)
}

func num(dst []byte, name string, n int64) []byte {
	return strconv.AppendInt(member(dst, name), n, 10)
}

func member(dst []byte, name string) []byte {
	if c := dst[len(dst)-1]; c != '{' && c != '[' {
		dst = append(dst, ',')
	}
	return append(rawjson.AppendQuote(dst, name), ':')
}

func usage(dst []byte, u lathe.Usage) []byte {
	dst = append(member(dst, "usage"), '{')
	dst = num(dst, "inputTokens", u.InputTokens)
	dst = num(dst, "outputTokens", u.OutputTokens)
	return append(dst, '}')
}

// stepFinish names the finish of one turn as the AI SDK does.
func stepFinish(r lathe.FinishReason) string {
	switch r {
	case lathe.FinishStop:
		return finishStop
	case lathe.FinishToolCalls:
		return finishToolCalls
	case lathe.FinishLength:
		return finishLength
	case lathe.FinishContentFilter:
		return finishFilter
	case lathe.FinishUnknown:
	}
	return "unknown"
}

func appendQuoted(dst []byte, s string) []byte { return rawjson.AppendQuote(dst, s) }
