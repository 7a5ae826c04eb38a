package responses

import (
	"github.com/lathe-run/lathe/internal/rawjson"
)

// published are the members of the published schema of a request that ParseRequest keeps in Unknown, and client_metadata, which
// Codex sends. Unknown members of `text` and `reasoning` are kept there too.
var published = rawjson.NewNames("background", "client_metadata", "context_management", "conversation", "include", "max_tool_calls",
	"metadata", "moderation", "prompt", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "reasoning",
	"safety_identifier", "service_tier", "store", "stream_options", "text", "top_logprobs", "truncation")

// Published reports whether name is a member of the published schema of a request that ParseRequest does not read completely.
func Published(name string) bool { return published.Has(name) }

// LikePublished returns the published member that differs from name only under Unicode case folding; "" if there is none.
func LikePublished(name string) string { return published.Like(name) }
