package gemini

import (
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// takeUsage reads usageMetadata. Its counts are cumulative, so that later ones replace earlier ones.
func (a *Assembler) takeUsage(v []byte) {
	if rawjson.Kind(v) != '{' {
		a.Fault(faultUsageInvalid)
		return
	}
	var u lathe.Usage
	for key, v := range rawjson.Members(v) {
		var to *int64
		switch string(key) {
		case `"promptTokenCount"`, `"prompt_token_count"`, `"toolUsePromptTokenCount"`, `"tool_use_prompt_token_count"`:
			to = &u.InputTokens
		case `"cachedContentTokenCount"`, `"cached_content_token_count"`:
			to = &u.CachedTokens
		case `"candidatesTokenCount"`, `"candidates_token_count"`:
			to = &u.OutputTokens
		case `"thoughtsTokenCount"`, `"thoughts_token_count"`:
			to = &u.ReasoningTokens
		case `"totalTokenCount"`, `"total_token_count"`:
			to = &u.TotalTokens
		default:
			continue
		}
		if string(v) == "null" {
			continue
		}
		n, err := strconv.ParseInt(string(v), 10, 64)
		if err != nil {
			if whole, must := parseInt(v); must == "" {
				n, err = whole, nil
			}
		}
		if err != nil || n < 0 || n > 1<<53 {
			a.Fault(faultUsageInvalid)
			continue
		}
		*to += n // the prompt has two counts, which are added
	}
	u.OutputTokens += u.ReasoningTokens
	if u.TotalTokens == 0 {
		u.TotalTokens = u.InputTokens + u.OutputTokens
	}
	a.usage = u
}

// appendUsage appends a usageMetadata.
func appendUsage(dst wire.JSON, u *lathe.Usage) wire.JSON {
	dst = dst.Lit(`{"promptTokenCount":`).Int(u.InputTokens)
	if u.CachedTokens > 0 {
		dst = dst.Num("cachedContentTokenCount", u.CachedTokens)
	}
	dst = dst.Num("candidatesTokenCount", max(u.OutputTokens-u.ReasoningTokens, 0))
	if u.ReasoningTokens > 0 {
		dst = dst.Num("thoughtsTokenCount", u.ReasoningTokens)
	}
	return dst.Num("totalTokenCount", u.Total()).Lit("}")
}
