package uistream

import (
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

func usage(dst wire.JSON, u lathe.Usage) wire.JSON {
	return dst.Obj("usage").Num("inputTokens", u.InputTokens).Num("outputTokens", u.OutputTokens).Lit("}")
}

// stepFinish returns the finish reason of one turn in the terms of the AI SDK.
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
