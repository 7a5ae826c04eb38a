package openai

import (
	"github.com/lathe-run/lathe/internal/rawjson"
)

// published are the members of the published schema of a request that ParseRequest does not read.
var published = rawjson.NewNames("audio", "frequency_penalty", "logit_bias", "logprobs", "metadata", "modalities", "moderation", "prediction",
	"presence_penalty", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "safety_identifier", "service_tier", "store",
	"top_logprobs", "verbosity", "web_search_options")

// Published reports whether the published schema of chat completions has the member and ParseRequest does not read it.
func Published(name string) bool { return published.Has(name) }

// LikePublished returns the published member that name equals under case folding without being it; "" if there is none.
func LikePublished(name string) string { return published.Like(name) }

// Reads reports whether ParseRequest reads the member, or one that equals it under case folding.
func Reads(name string) bool { return requestNames.Has(name) || requestNames.Like(name) != "" }
