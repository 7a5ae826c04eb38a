package preset

import (
	"slices"
	"testing"
)

func TestMembersOfEveryProfile(t *testing.T) {
	t.Parallel()
	for _, p := range known().Profiles {
		if _, ok := serverMembers[p.Name]; !ok {
			t.Errorf("profile %s lists no members", p.Name)
		}
	}
	all := Members("")
	for name := range serverMembers {
		for _, m := range Members(name) {
			if !slices.Contains(all, m) {
				t.Errorf("%s of %s is not among those of all", m, name)
			}
		}
	}
	for _, name := range []string{"top_k", "min_p", "chat_template_kwargs", "structured_outputs", "guided_json", "cache_prompt", "n_probs", "timings_per_token", "return_progress", "thinking"} {
		if !slices.Contains(all, name) {
			t.Errorf("%s is not known", name)
		}
	}
	for _, name := range []string{"kv_transfer_params", "vllm_xargs", "logits_processors", "chat_template", "documents", "tool_resources", "plugins", "store", "models", "provider",
		"lora", "id_slot", "lora_path", "keep_alive", "options", "draft_model", "bootstrap_host", "extra_body", "priority"} {
		if slices.Contains(all, name) {
			t.Errorf("%s chooses something that is not the client's to choose", name)
		}
	}
	if slices.Contains(Members("llamacpp"), "guided_json") || len(Members("openai")) > 0 {
		t.Error("a profile takes members of others")
	}
}
