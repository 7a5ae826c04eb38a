package responses

import (
	"github.com/lathe-run/lathe/internal/rawjson"
)

// Published are members in the published schema of a request that ParseRequest stores in Unknown, and client_metadata, which Codex sends.
// Unknown members of `text` and `reasoning` are also stored there.
var Published = rawjson.NewNames("background", "client_metadata", "context_management", "conversation", "include", "max_tool_calls",
	"metadata", "moderation", "prompt", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "reasoning",
	"safety_identifier", "service_tier", "store", "stream_options", "text", "top_logprobs", "truncation")
