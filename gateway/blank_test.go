package gateway_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// A blank answer has a cause in the object lathe, and reasoning that stands alone is in the whole answer as in the stream.
func TestBlankAnswerHasACause(t *testing.T) {
	t.Parallel()
	thought := `{"role":"assistant","reasoning_content":"need more time"}`
	for name, c := range map[string]struct {
		turns           [][]string
		members         string
		want, reasoning string
	}{
		"reasoning":       {turns: [][]string{{thought}}, want: "reasoning_only", reasoning: "need more time"},
		"reasoning later": {turns: [][]string{{`{"reasoning_content":"a "}`, deltaCall("c1", "calculator", `{"expression":"6*7"}`)}, {thought}, {thought}}, want: "reasoning_only", reasoning: "a need more time"},
		"empty":           {turns: [][]string{{`{"role":"assistant","content":""}`}}, want: "empty"},
		"calls ignored":   {turns: [][]string{{deltaCall("c1", "calculator", `{}`)}}, members: `,"lathe":{"mode":"disabled"}`, want: "calls_ignored"},
		"answer":          {turns: [][]string{{deltaText("42")}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, stream := range []string{"false", "true"} {
				f := serve(t, &setting{instead: turns(c.turns...)})
				_, body := f.do("POST", "/v1/chat/completions", `{"model":"sim/demo","stream":`+stream+`,"messages":[{"role":"user","content":"go"}]`+c.members+`}`)
				want := ""
				if c.want != "" {
					want = `"blank":{"reason":"` + c.want + `"}`
				}
				if strings.Contains(body, `"blank"`) != (want != "") || !strings.Contains(body, want) {
					t.Errorf("stream %s: want %q in %s", stream, want, body)
				}
				if stream == "true" {
					continue
				}
				var got struct {
					Choices []struct {
						Message struct {
							Reasoning string `json:"reasoning_content"`
						}
					}
				}
				if err := json.Unmarshal([]byte(body), &got); err != nil || len(got.Choices) != 1 || got.Choices[0].Message.Reasoning != c.reasoning {
					t.Errorf("%v: want the reasoning %q in %s", err, c.reasoning, body)
				}
			}
		})
	}
}
