package messages

import (
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/wire"
)

// TestErrorsHaveTheWiresWords: errors of any wire have the type, the form and the text that clients of this one read.
func TestErrorsHaveTheWiresWords(t *testing.T) {
	for _, tt := range []struct {
		e    wire.APIError
		want string
	}{
		{wire.APIError{Status: 400, Message: "Must be a string.", Param: "messages[0].role"}, `"invalid_request_error","message":"messages[0].role: Must be a string."}`},
		{wire.APIError{Status: 401, Type: "invalid_request_error", Message: "x"}, `"invalid_request_error","message":"x"}`},
		{wire.APIError{Status: 401, Message: "x"}, `"authentication_error","message":"x"}`},
		{wire.APIError{Status: 402, Message: "x"}, `"billing_error","message":"x"}`},
		{wire.APIError{Status: 403, Message: "x"}, `"permission_error","message":"x"}`},
		{wire.APIError{Status: 404, Message: "x"}, `"not_found_error","message":"x"}`},
		{wire.APIError{Status: 409, Message: "x"}, `"invalid_request_error","message":"x"}`},
		{wire.APIError{Status: 413, Message: "x"}, `"request_too_large","message":"x"}`},
		{wire.APIError{Status: 429, Type: "insufficient_quota", Message: "x", RequestID: "req_1"}, `"rate_limit_error","message":"x"},"request_id":"req_1"`},
		{wire.APIError{Status: 500, Type: "server_error", Message: "x"}, `"api_error","message":"x"}`},
		{wire.APIError{Status: 502, Message: "x"}, `"api_error","message":"x"}`},
		{wire.APIError{Status: 503, Message: "x"}, `"overloaded_error","message":"x"}`},
		{wire.APIError{Status: 504, Message: "x"}, `"timeout_error","message":"x"}`},
		{wire.APIError{Status: 529, Message: "x"}, `"overloaded_error","message":"x"}`},
		{wire.APIError{Type: "RESOURCE_EXHAUSTED", Message: "x"}, `"rate_limit_error","message":"x"}`},
		{wire.APIError{Code: "rate_limit_exceeded", Message: "x"}, `"rate_limit_error","message":"x"}`},
		{wire.APIError{Message: "x"}, `"api_error","message":"x"}`},
		{wire.APIError{Status: 400, Code: overflowCode, Message: "prompt is too long: 9001 tokens > 8192 maximum"}, `"invalid_request_error","message":"prompt is too long: 9001 tokens > 8192 maximum"}`},
		{wire.APIError{Status: 400, Code: overflowCode, Message: "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens."}, `"invalid_request_error","message":"prompt is too long: 9001 tokens > 8192 maximum"}`},
		{wire.APIError{Status: 400, Code: overflowCode, Message: "request (9001 tokens) exceeds the available context size (8192 tokens)"}, `"invalid_request_error","message":"prompt is too long: 9001 tokens > 8192 maximum"}`},
		{wire.APIError{Status: 400, Code: overflowCode, Message: "The input token count (9001) exceeds the maximum number of tokens allowed (8192)."}, `"invalid_request_error","message":"prompt is too long: 9001 tokens > 8192 maximum"}`},
		{wire.APIError{Status: 400, Code: overflowCode, Message: "too much"}, `"invalid_request_error","message":"prompt is too long: too much"}`},
	} {
		want := `{"type":"error","error":{"type":` + strings.TrimSuffix(tt.want, "}")
		if !strings.HasSuffix(tt.want, "}") {
			want += "}"
		} else {
			want += "}}"
		}
		if got := string(Codec{}.AppendError(nil, &tt.e)); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// TestParseErrorForms: errors of the API, of gateways in front of it and of what is neither.
func TestParseErrorForms(t *testing.T) {
	long := strings.Repeat("ä", 5000)
	for _, tt := range []struct {
		status int
		body   string
		want   wire.APIError
	}{
		{400, `{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: Field required"},"request_id":"req_1"}`, wire.APIError{Status: 400, Type: "invalid_request_error", Message: "max_tokens: Field required", RequestID: "req_1"}},
		{400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`, wire.APIError{Status: 400, Type: "invalid_request_error", Code: overflowCode, Message: "prompt is too long: 210000 tokens > 200000 maximum"}},
		{400, `{"error":{"type":"invalid_request_error","message":"input length and ` + "`max_tokens`" + ` exceed context limit: 1 + 2 > 2"}}`, wire.APIError{Status: 400, Type: "invalid_request_error", Code: overflowCode, Message: "input length and `max_tokens` exceed context limit: 1 + 2 > 2"}},
		{429, `{"error":{"message":"slow","code":"x","param":"p","retry_after":1.5}}`, wire.APIError{Status: 429, Message: "slow", Code: "x", Param: "p", RetryAfter: 1.5}},
		{500, `{"error":"broken","type":"t"}`, wire.APIError{Status: 500, Message: "broken", Type: "t"}},
		{502, `{"detail":"no"}`, wire.APIError{Status: 502, Message: "no"}},
		{502, `<html>`, wire.APIError{Status: 502, Message: "the server answered with an HTML page"}},
		{503, ``, wire.APIError{Status: 503}},
		{503, `[1]`, wire.APIError{Status: 503}},
		{500, `{"error":{"message":"` + long + `"}}`, wire.APIError{Status: 500, Message: long[:2048]}},
	} {
		if got := (Codec{}).ParseError(tt.status, []byte(tt.body)); *got != tt.want {
			t.Errorf("%.80s: %+v", tt.body, got)
		}
	}
}

// TestRefusedNamesFeature: what a server refused is found in its words, and an error of another kind is none.
func TestRefusedNamesFeature(t *testing.T) {
	for message, want := range map[string]string{
		"adaptive thinking is not supported on this model": featureAdaptive,
		`"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking.`: featureBudget,
		"This model does not support the effort parameter.":             featureEffort,
		"output_config: Extra inputs are not permitted":                 featureEffort,
		"output_config.format: Extra inputs are not permitted":          featureFormat,
		"tools.0.custom.strict: Extra inputs are not permitted":         featureStrict,
		"messages.1.content.0: Invalid `signature` in `thinking` block": wire.FeatureBound,
		"messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\". That setting requires the `thinking-binding-controls-2026-08-01` value in the `anthropic-beta` header.": wire.FeatureBound,
		"The model returned the following errors: messages.1.content.5: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.":                                                                                         wire.FeatureBound,
		"thinking.block_binding: Extra inputs are not permitted":                                                           featureBinding,
		`messages: Unexpected role "system". The Messages API accepts a top-level system parameter`:                        wire.FeatureSystem,
		"`temperature` and `top_p` cannot both be specified for this model. Please use only one.":                          featureTopP,
		"`temperature` is deprecated for this model.":                                                                      featureTemperature,
		"thinking: Extra inputs are not permitted":                                                                         featureThinking,
		"Requests which include `tool_use` or `tool_result` blocks must define tools":                                      featureHistory,
		"max_tokens: Field required":                                                                                       "",
		"temperature: Input should be less than or equal to 1":                                                             "",
		"tools.0.custom.strict: too many strict tools":                                                                     "",
		"output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false":           "",
		"output_config.effort: Input should be 'low', 'medium' or 'high'":                                                  "",
		"thinking: Input tag 'adaptive' found using 'type' does not match any of the expected tags: 'disabled', 'enabled'": featureAdaptive,
		"messages.2.role: Input should be 'user' or 'assistant'":                                                           wire.FeatureSystem,
		"Your account is restricted":                                                                                       "",
		"prompt is too long: 2 tokens > 1 maximum":                                                                         "",
	} {
		if got := (Codec{}).Refused(&wire.APIError{Status: 400, Type: "invalid_request_error", Message: message}); got != want {
			t.Errorf("%s: %q, want %q", message, got, want)
		}
	}
	if got := (Codec{}).Refused(&wire.APIError{Status: 429, Message: "adaptive thinking"}); got != "" {
		t.Errorf("status 429: %q", got)
	}
}

// TestAppendModels: the list has the members that SDKs read.
func TestAppendModels(t *testing.T) {
	if got, want := string(AppendModels(nil, []Model{{ID: "a", Created: 1}, {ID: "b", DisplayName: "B"}})),
		`{"data":[{"type":"model","id":"a","display_name":"a","created_at":"1970-01-01T00:00:01Z"},{"type":"model","id":"b","display_name":"B","created_at":"1970-01-01T00:00:00Z"}],"has_more":false,"first_id":"a","last_id":"b"}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := string(AppendModels(nil, nil)); got != `{"data":[],"has_more":false,"first_id":null,"last_id":null}` {
		t.Error(got)
	}
	if got := string(AppendCount(nil, 42)); got != `{"input_tokens":42}` {
		t.Error(got)
	}
}
