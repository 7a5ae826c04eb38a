package messages

import (
	"slices"
	"strings"

	"github.com/lathe-run/lathe/internal/wire"
)

// Features that a server may refuse and without which a request can be sent again: see [wire.EncodeOptions].Without.
const (
	featureThinking    = "thinking"
	featureAdaptive    = "adaptive_thinking"
	featureBudget      = "thinking_budget"
	featureDisplay     = "thinking_display"
	featureEffort      = "effort"
	featureFormat      = "output_format"
	featureStrict      = "strict"
	featureTemperature = "temperature"
	featureTopP        = "top_p"
	featureTopK        = "top_k"
	featureHistory     = "tool_history"
	featureBinding     = "thinking_binding"
)

// unsupported are words in errors about a feature that the server lacks. Errors about one value, such as a signature or a schema, do not
// contain them, so that a mistake in one request does not disable a feature for others.
var unsupported = []string{"not support", "not permitted", "not allowed", "deprecated", "does not match any of the expected tags",
	"unknown", "unrecognized", "cannot both", "must define tools", "unexpected role", "input should be 'user' or 'assistant'", "expects"}

// refusals map words of an error message to the refused feature. A row applies if the message contains all of its words; the first such row
// is used. The rows of [wire.FeatureBound] do not require a word of unsupported. They are about thinking in the history of this request:
// its text or something before it has changed, or another model or account has signed it (Anthropic's guides to preserved thinking and to
// extended thinking, read 2026-11-28). Bedrock uses the same words in errors of another type.
var refusals = []struct {
	feature string
	words   []string
}{
	{wire.FeatureBound, []string{"bound to a different conversation"}},
	{wire.FeatureBound, []string{"invalid", "signature", "thinking"}},
	{wire.FeatureBound, []string{"thinking", "cannot be modified"}},
	{featureBinding, []string{"block_binding"}},
	{featureBudget, []string{"thinking.type.enabled"}},
	{featureBudget, []string{"budget_tokens"}},
	{featureAdaptive, []string{"adaptive"}},
	{featureDisplay, []string{"thinking", "display"}},
	{featureFormat, []string{"output_config.format"}},
	{featureFormat, []string{"output_format"}},
	{featureFormat, []string{"structured output"}},
	{featureEffort, []string{"output_config"}},
	{featureEffort, []string{"effort"}},
	{featureStrict, []string{"strict:"}},
	{featureStrict, []string{"strict tool"}},
	{featureHistory, []string{"must define tools"}},
	{featureHistory, []string{"toolconfig"}},
	{wire.FeatureSystem, []string{"role", "system", "not support"}},
	{wire.FeatureSystem, []string{"unexpected role", "system"}},
	{wire.FeatureSystem, []string{"role", "input should be 'user' or 'assistant'"}},
	{featureTopP, []string{"temperature", "top_p", "both"}},
	{featureTemperature, []string{"temperature"}},
	{featureTopP, []string{"top_p"}},
	{featureTopK, []string{"top_k"}},
	{featureThinking, []string{"thinking"}},
}

// Refused returns the feature that the server has refused, if e is a 400 or 422 error about a feature; otherwise "".
func (Codec) Refused(e *wire.APIError) string {
	if e == nil || e.Code == overflowCode {
		return ""
	}
	if e.Status != 400 && e.Status != 422 {
		return ""
	}
	message := strings.ToLower(e.Message)
	has := func(words string) bool { return strings.Contains(message, words) }
	lacks := slices.ContainsFunc(unsupported, has)
	isMissing := func(words string) bool { return !has(words) }
	for _, r := range refusals {
		mayApply := lacks || r.feature == wire.FeatureBound
		if mayApply && !slices.ContainsFunc(r.words, isMissing) {
			return r.feature
		}
	}
	return ""
}
