package tool_test

import (
	"context"
	"encoding/json"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/tool"
)

type findArgs struct {
	State string `json:"state" jsonschema:"enum=open,enum=closed"`
	Limit int    `json:"limit,omitempty" jsonschema:"minimum=1,maximum=50"`
}

// Arguments that the tags of a field do not allow end a call before the function runs.
func TestTagsRestrictArguments(t *testing.T) {
	t.Parallel()
	find := tool.Func("find", "", func(_ context.Context, in findArgs) (string, error) { return in.State, nil }, nil)
	w := open(t, limits(lathe.Limits{MaxRepeatedCalls: 100}), find)
	for args, code := range map[string]lathe.Code{
		`{"state":"open"}`: "", `{"state":"closed","limit":50}`: "", `{"state":"all"}`: lathe.CodeInvalidArguments, `{"state":"open","limit":51}`: lathe.CodeInvalidArguments,
	} {
		if res, _, _ := one(t, w, call("find", args)); res.Code != code {
			t.Errorf("%s: code %q, want %q", args, res.Code, code)
		}
	}
}

func TestSchemaOf(t *testing.T) {
	t.Parallel()
	states := func(values ...any) func(*jsonschema.Schema) {
		return func(s *jsonschema.Schema) { s.Properties["state"].Enum = append(s.Properties["state"].Enum, values...) }
	}
	got, err := tool.SchemaOf[*findArgs](states("archived"), states("lost"))
	if want := `{"additionalProperties":false,"properties":{"limit":{"maximum":50,"minimum":1,"type":"integer"},"state":{"enum":["open","closed","archived","lost"],"type":"string"}},"required":["state"],"type":"object"}`; err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	if again, err := tool.SchemaOf[findArgs](); err != nil || strings.Contains(string(again), "archived") {
		t.Errorf("an adjustment is in a later schema: %s, %v", again, err)
	}
	for want, of := range map[string]func() (json.RawMessage, error){
		"tool: schema of tool_test.x: invalid_config: field F of tool_test.x: chan int has no JSON form. Correct the type, or write the schema as JSON": func() (json.RawMessage, error) {
			type x struct{ F chan int }
			return tool.SchemaOf[x]()
		},
		"not valid after the adjustments": func() (json.RawMessage, error) {
			return tool.SchemaOf[findArgs](func(s *jsonschema.Schema) { s.Properties["state"].Pattern = "[" })
		},
	} {
		if _, err := of(); lathe.CodeOf(err) != lathe.CodeInvalidConfig || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// The error of a tag names the field, the word and what to do instead.
func TestErrorOfATagNamesTheWayOut(t *testing.T) {
	t.Parallel()
	type args struct {
		Priority int `json:"priority" jsonschema:"enum=low"`
	}
	_, err := tool.NewSet(tool.Func("file", "", func(context.Context, args) (string, error) { return "", nil }, nil))
	if want := `tool: register file: invalid_config: no schema for its input: field Priority of tool_test.args: the tag has enum=low, and "low" is not an integer. Correct the type, or set FuncOptions.Schema: SchemaOf returns`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

type shownNode struct {
	Name string        `json:"name"`
	Kids []*shownNode  `json:"kids,omitempty"`
	At   time.Time     `json:"at"`
	ID   big.Int       `json:"id"`
	Raw  []byte        `json:"raw"`
	Map  map[int]uint8 `json:"map"`
	skip chan int
}

type untagged struct {
	Name     string `json:"name"`
	Password string
}

// Without Show, all of an output is shown if its type says what that is; otherwise the error says what to write.
func TestOutputsThatAreShownByDefault(t *testing.T) {
	t.Parallel()
	_ = shownNode{}.skip
	type outer struct {
		Users map[string][]untagged `json:"users"`
	}
	type embeds struct {
		untagged
		ID int `json:"id"`
	}
	for want, one := range map[string][]lathe.Tool{
		"": {returning[string](), returning[int](), returning[*bool](), returning[struct{}](), returning[shownNode](), returning[[]shownNode](), returning[map[string]*shownNode](),
			returning[time.Time](), returning[json.Number](), returning[[]byte]()},
		"the field Password of tool_test.":      {returning[untagged](), returning[*untagged](), returning[[]untagged](), returning[map[string]untagged](), returning[outer](), returning[embeds]()},
		"does not say what the output contains": {returning[any](), returning[map[string]any](), returning[[]error]()},
		"writes its own JSON":                   {returning[json.RawMessage](), returning[*lathe.Output](), returning[ownJSON]()},
	} {
		for _, f := range one {
			_, err := tool.NewSet(f)
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `write Show: []string{"*"} in FuncOptions`)) {
				t.Errorf("%v, want %q", err, want)
			}
		}
	}
	list := tool.Func("list", "", func(context.Context, struct{}) ([]findArgs, error) { return []findArgs{{State: "open"}}, nil }, nil)
	if res, _, _ := one(t, open(t, nil, list), call("list", "")); res.Content != `[{"state":"open","limit":0}]` {
		t.Errorf("the model receives %s", res.Content)
	}
}

func returning[Out any]() lathe.Tool {
	return tool.Func("t", "", func(context.Context, struct{}) (out Out, err error) { return out, nil }, nil)
}
