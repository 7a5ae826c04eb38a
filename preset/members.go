package preset

import (
	"slices"
	"strings"
)

// Request members that servers accept in addition to OpenAI's published schema, by purpose. None of them selects another model, server,
// account, file or slot, or stores data.
const (
	sampling = "top_k min_p repetition_penalty min_tokens "
	thinking = "chat_template_kwargs reasoning thinking enable_thinking thinking_budget include_reasoning "
	decoding = "guided_json guided_regex guided_choice guided_grammar guided_decoding_backend guided_whitespace_pattern structured_outputs "
	tokens   = "stop_token_ids include_stop_str_in_output ignore_eos skip_special_tokens spaces_between_special_tokens bad_words " +
		"allowed_token_ids add_generation_prompt continue_final_message add_special_tokens return_tokens_as_token_ids "
)

// serverMembers are the members that servers accept, by profile.
var serverMembers = map[string]string{
	"openai":        "",
	"openrouter":    "top_k top_a min_p repetition_penalty reasoning include_reasoning usage transforms cache_control structured_outputs",
	"volcanoengine": "thinking repetition_penalty top_k reasoning",
	"deepseek":      "thinking",
	"gemini":        "",
	// Profiles of other wires, on which the members of chat completions do not exist.
	"openai_responses": "", "anthropic": "", "google": "",
	"mistral": "safe_prompt random_seed prompt_mode min_tokens",
	"vllm":    sampling + thinking + decoding + tokens + "length_penalty truncate_prompt_tokens cache_salt thinking_token_budget repetition_detection",
	"ollama":  "reasoning think",
	"llamacpp": "top_k min_p typical_p repeat_penalty repeat_last_n dynatemp_range dynatemp_exponent xtc_probability xtc_threshold dry_multiplier dry_base " +
		"dry_allowed_length dry_penalty_last_n dry_sequence_breakers mirostat mirostat_tau mirostat_eta top_n_sigma samplers grammar grammar_lazy " +
		"grammar_triggers json_schema n_predict n_keep n_probs min_keep ignore_eos cache_prompt return_tokens return_progress timings_per_token " +
		"post_sampling_probs reasoning_format thinking_forced_open reasoning_budget thinking_budget_tokens chat_template_kwargs parse_tool_calls add_generation_prompt",
	"sglang":   sampling + thinking + tokens + "regex ebnf stop_regex no_stop_trim separate_reasoning stream_reasoning",
	"lmstudio": "top_k min_p repeat_penalty reasoning",
}

// Members returns, sorted, the members of a request that the server of a profile accepts in addition to OpenAI's schema of chat
// completions. For "" and an unknown profile it returns those of all profiles.
func Members(profile string) []string {
	if listed, ok := serverMembers[profile]; ok {
		return slices.Sorted(slices.Values(strings.Fields(listed)))
	}
	var all []string
	for _, listed := range serverMembers {
		all = append(all, strings.Fields(listed)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
