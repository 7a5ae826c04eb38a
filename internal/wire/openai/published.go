package openai

import (
	"github.com/lathe-run/lathe/internal/rawjson"
)

// Published are members in the published schema of a request that ParseRequest does not read.
var Published = rawjson.NewNames("audio", "frequency_penalty", "logit_bias", "logprobs", "metadata", "modalities", "moderation", "prediction",
	"presence_penalty", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "safety_identifier", "service_tier", "store",
	"top_logprobs", "verbosity", "web_search_options")

// Reads reports whether ParseRequest reads the member name, or a member that equals it under case folding.
func Reads(name string) bool { return requestNames.Has(name) || requestNames.Like(name) != "" }
