package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/tool"
)

const anything = `{"type":"object"}`

func form(message, schema string) tool.Question {
	return tool.Question{Form: &tool.Form{Message: message, Schema: json.RawMessage(schema)}}
}

func oneField(name, typ string) string {
	return fmt.Sprintf(`{"type":"object","properties":{%q:{"type":%q}},"required":[%q]}`, name, typ, name)
}

func sample(text string, tokens int) tool.Question {
	return tool.Question{Sample: &tool.Sample{MaxTokens: tokens, Messages: []lathe.Message{{Role: lathe.RoleUser, Parts: []lathe.Part{lathe.Text{Text: text}}}}}}
}

// asks returns a tool that asks the questions of each step at once, step after step, and returns the answers as a text.
func asks(name, description, schema string, steps ...func(args map[string]string) map[string]tool.Question) lathe.Tool {
	return newTool(name, description, schema, func(ctx context.Context, raw json.RawMessage) (*lathe.Output, error) {
		args := map[string]string{}
		if err := json.Unmarshal(raw, &args); err != nil {
			return nil, err
		}
		shown := "state-ok:"
		for _, step := range steps {
			answers, err := tool.AskerFrom(ctx).Ask(ctx, step(args))
			if err != nil {
				return nil, err
			}
			for _, key := range slices.Sorted(maps.Keys(answers)) {
				a := answers[key]
				shown += fmt.Sprintf(" %s=%s%s%s%v", key, a.Refused, a.Form, a.Message.Text(), a.Roots)
			}
		}
		return says(shown)(ctx, nil)
	})
}

// oneQuestion returns a step that asks one question.
func oneQuestion(name string, q tool.Question) func(map[string]string) map[string]tool.Question {
	return func(map[string]string) map[string]tool.Question { return map[string]tool.Question{name: q} }
}

const (
	defaults = `{"type":"object","properties":{"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},
"score":{"type":"number","default":95.5},"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},"verified":{"type":"boolean","default":true}}}`
	enums = `{"type":"object","properties":{"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"}]},
"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},
"untitledMulti":{"type":"array","items":{"type":"string","enum":["option1","option2","option3"]}},
"titledMulti":{"type":"array","items":{"anyOf":[{"const":"value1","title":"First Choice"},{"const":"value2","title":"Second Choice"}]}}}}`
)

// asking returns the tools that ask the client questions.
func asking() []lathe.Tool {
	name := form("What is your name?", oneField("name", "string"))
	confirm := form("Please confirm", oneField("ok", "boolean"))
	return []lathe.Tool{
		asks("test_sampling", "Asks the client's model.", `{"type":"object","properties":{"prompt":{"type":"string"}},"required":["prompt"]}`,
			func(args map[string]string) map[string]tool.Question {
				return map[string]tool.Question{"answer": sample(args["prompt"], 100)}
			}),
		asks("test_elicitation", "Asks the person.", `{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}`,
			func(args map[string]string) map[string]tool.Question {
				return map[string]tool.Question{"user": form(args["message"], `{"type":"object","properties":{"username":{"type":"string","description":"User's response"},
"email":{"type":"string","description":"User's email address"}},"required":["username","email"]}`)}
			}),
		asks("test_elicitation_sep1034_defaults", "Asks with defaults.", "", oneQuestion("user", form("Please review", defaults))),
		asks("test_elicitation_sep1330_enums", "Asks with choices.", "", oneQuestion("user", form("Please choose", enums))),
		asks("test_streaming_elicitation", "Asks the person.", "", oneQuestion("user", name)),
		asks("test_missing_capability", "Needs the client's model.", "", oneQuestion("answer", sample("Hello?", 10))),
		asks("test_input_required_result_elicitation", "Asks the person.", "", oneQuestion("user_name", name)),
		asks("test_input_required_result_sampling", "Asks the client's model.", "", oneQuestion("capital_question", sample("What is the capital of France?", 100))),
		asks("test_input_required_result_list_roots", "Asks for the client's folders.", "", oneQuestion("client_roots", tool.Question{Roots: true})),
		asks("test_input_required_result_request_state", "Asks for a yes.", "", oneQuestion("confirm", confirm)),
		asks("test_input_required_result_tampered_state", "Asks for a yes.", "", oneQuestion("confirm", confirm)),
		asks("test_input_required_result_multiple_inputs", "Asks three things at once.", "", func(map[string]string) map[string]tool.Question {
			return map[string]tool.Question{"user_name": name, "greeting": sample("Generate a greeting", 50), "client_roots": {Roots: true}}
		}),
		asks("test_input_required_result_multi_round", "Asks twice.", "", oneQuestion("step1", form("Step 1: What is your name?", oneField("name", "string"))),
			oneQuestion("step2", form("Step 2: What is your favorite color?", oneField("color", "string")))),
		newTool("test_input_required_result_capabilities", "Asks what the client can be asked.", "", func(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
			questions, asker := map[string]tool.Question{"person": name, "model": sample("Hello?", 10)}, tool.AskerFrom(ctx)
			maps.DeleteFunc(questions, func(_ string, q tool.Question) bool { return !asker.Can(q) })
			if len(questions) == 0 {
				return nil, errors.New("nobody can be asked")
			}
			if _, err := asker.Ask(ctx, questions); err != nil {
				return nil, err
			}
			return says("ok")(ctx, nil)
		}),
	}
}
