package bfcl_test

import (
	"errors"
	"fmt"
	"log"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/lab/bfcl"
)

// small is data of one case in each of some categories.
var small = fstest.MapFS{
	"BFCL_v4_live_simple.first1.json": {Data: []byte(`{"id":"live_simple_0-0-0","question":[[{"role":"system","content":"Be brief."},{"role":"user","content":"Write to Ann."}]],` +
		`"function":[{"name":"mail.send","description":"Sends mail.","parameters":{"type":"dict","properties":{"to":{"type":"any"},"at":{"type":"tuple","items":{"type":"float"},"optional":true}},"required":["to"]}}]}` + "\n")},
	"possible_answer/BFCL_v4_live_simple.first1.json": {Data: []byte(`{"id":"live_simple_0-0-0","ground_truth":[{"mail.send":{"to":["Ann"],"at":[[7.5],""]}}]}`)},
	"BFCL_v4_simple_java.json": {Data: []byte(`{"id":"simple_java_0","question":[[{"role":"user","content":"Ring."}]],` +
		`"function":[{"name":"Clock.set","description":"Sets a clock.","parameters":{"type":"dict","properties":{"hours":{"type":"Array","description":"When.","items":{"type":"integer"}}},"required":["hours"]}}]}`)},
	"BFCL_v4_irrelevance.json":     {Data: []byte(`{"id":"irrelevance_0","question":[[{"role":"user","content":"How do you do?"}]],"function":[]}`)},
	"BFCL_v4_live_relevance.json":  {Data: []byte(`{"id":"live_relevance_0","question":[[{"role":"user","content":"Add."}]],"function":[]}`)},
	"BFCL_v4_multi_turn_base.json": {Data: []byte(`{"id":"multi_turn_base_0","question":[[{"role":"user","content":"Add."}],[{"role":"user","content":"Again."}]],"involved_classes":["MathAPI"]}`)},
	"multi_turn_func_doc/math_api.json": {Data: []byte(`{"name":"add","description":"Adds.","parameters":{"type":"dict","properties":{"n":{"type":"float"}}}}` + "\n" +
		`{"name":"sub","description":"Subtracts.","parameters":{"type":"dict","properties":{}}}`)},
	"LICENSE": {Data: []byte("not a category")},
}

func only(t testing.TB, category string) *bfcl.Case {
	t.Helper()
	for c, err := range bfcl.Suite(small, category) {
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	t.Fatalf("%s has no case", category)
	return nil
}

func TestSuiteMakesMessagesAndTools(t *testing.T) {
	t.Parallel()
	c := only(t, "live_simple")
	if d := cmp.Diff([][]lathe.Message{{lathe.System("Be brief."), lathe.User("Write to Ann.")}}, c.Turns); d != "" {
		t.Errorf("turns (-want +got):\n%s", d)
	}
	want := []*lathe.ToolSpec{{
		Name: "mail_send", Description: "Sends mail.", Owner: lathe.OwnerClient, Allowlist: []string{"*"}, Origin: "bfcl",
		Schema: []byte(`{"type":"object","properties":{"to":{},"at":{"type":"array","items":{"type":"number"}}},"required":["to"]}`),
	}}
	if d := cmp.Diff(want, c.Tools); d != "" {
		t.Errorf("tools (-want +got):\n%s", d)
	}
	java := only(t, "simple_java")
	if got, want := string(java.Tools[0].Schema), `{"type":"object","properties":{"hours":{"type":"string","description":"When. Written as a Java expression of type Array of integer."}},"required":["hours"]}`; got != want {
		t.Errorf("Java schema: got %s, want %s", got, want)
	}
	if java.Unscored == "" {
		t.Error("a case without an answer has no verdict, and does not say so")
	}
	multi := only(t, "multi_turn_base")
	if len(multi.Turns) != 2 || len(multi.Tools) != 2 || multi.Unscored == "" {
		t.Errorf("multi-turn case: got %d turns, %d tools, unscored %q", len(multi.Turns), len(multi.Tools), multi.Unscored)
	}
}

func TestScoreCalls(t *testing.T) {
	t.Parallel()
	call := func(name, args string) lathe.ToolCall { return lathe.ToolCall{Name: name, Arguments: args} }
	tests := []struct {
		name, category string
		calls          []lathe.ToolCall
		want           string
	}{
		{"right", "live_simple", []lathe.ToolCall{call("mail_send", ` {"to": "ann", "at": [7.5]} `)}, ""},
		{"by the leaderboard's name", "live_simple", []lathe.ToolCall{call("mail.send", `{"to":"Ann"}`)}, ""},
		{"none", "live_simple", nil, "simple_function_checker:wrong_count"},
		{"without arguments", "live_simple", []lathe.ToolCall{call("mail_send", "")}, "simple_function_checker:missing_required"},
		{"of another tool", "live_simple", []lathe.ToolCall{call("send", `{"to":"Ann"}`)}, "simple_function_checker:wrong_func_name"},
		{"not JSON", "live_simple", []lathe.ToolCall{call("mail_send", `{"to":`)}, "ast_decoder:decoder_failed"},
		{"a key twice", "live_simple", []lathe.ToolCall{call("mail_send", `{"to":"Bob","to":"Ann"}`)}, "ast_decoder:decoder_failed"},
		{"no object", "live_simple", []lathe.ToolCall{call("mail_send", `["Ann"]`)}, "ast_decoder:decoder_failed"},
		{"cut off", "live_simple", []lathe.ToolCall{{Name: "mail_send", Arguments: `{"to":"Ann"}`, Incomplete: true}}, "ast_decoder:decoder_failed"},
		{"none is right", "irrelevance", nil, ""},
		{"one where none is right", "irrelevance", []lathe.ToolCall{call("x", "{}")}, "irrelevance_error:decoder_success"},
		{"one that is none", "irrelevance", []lathe.ToolCall{call("x", "{")}, ""},
		{"any is right", "live_relevance", []lathe.ToolCall{call("x", "{}")}, ""},
		{"none where any is right", "live_relevance", nil, "relevance_error:decoder_failed"},
		{"one that is none where any is right", "live_relevance", []lathe.ToolCall{call("x", "{")}, "relevance_error:decoder_failed"},
		{"without a verdict", "multi_turn_base", nil, "input_error:unscored"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			want := bfcl.Verdict{Valid: test.want == "", ErrorType: test.want}
			if got := only(t, test.category).ScoreCalls(test.calls); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func TestSuiteReportsWhatIsWrong(t *testing.T) {
	t.Parallel()
	const name = "BFCL_v4_simple_python.json"
	question := func(role, params string) string {
		return fmt.Sprintf(`{"id":"x","question":[[{"role":%q,"content":"Do."}]],"function":[{"name":"f","parameters":%s}]}`, role, params)
	}
	for _, test := range []struct{ name, text, want string }{
		{"not JSON", "{", "line 1"},
		{"no object", "\n[]", "line 2: want one JSON object"},
		{"no question", `{"id":"x","question":[],"function":[]}`, "there is no question"},
		{"a content that is no text", `{"id":"x","question":[[{"role":"user","content":7}]]}`, "not of the form"},
		{"another role", question("tool", "{}"), `no such role in a question: "tool"`},
		{"a function without parameters", question("user", "7"), "function 1: want a name and parameters"},
		{"an unknown class", `{"id":"x","question":[[{"role":"user","content":"Do."}]],"involved_classes":["../x"]}`, "class that is not known"},
		{"a line too long", strings.Repeat(" ", bfcl.MaxLineBytes+1), "too long"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			n := 0
			for c, err := range bfcl.Suite(fstest.MapFS{name: {Data: []byte(test.text)}}, "simple_python") {
				n++
				if c != nil || err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, %v, want an error of %q", c, err, test.want)
				}
			}
			if n != 1 {
				t.Errorf("yielded %d times, want once", n)
			}
		})
	}
	for _, err := range bfcl.Suite(small, "simple_python") {
		if !errors.Is(err, bfcl.ErrNoCategory) {
			t.Errorf("got %v, want ErrNoCategory", err)
		}
	}
	two := fstest.MapFS{name: {}, "BFCL_v3_simple_python.json": {}}
	for _, err := range bfcl.Suite(two, "simple_python") {
		if err == nil || !strings.Contains(err.Error(), "both BFCL_v3_simple_python.json and "+name) {
			t.Errorf("got %v, want both files named", err)
		}
	}
}

func TestCategories(t *testing.T) {
	t.Parallel()
	got, err := bfcl.Categories(small)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"irrelevance", "live_relevance", "live_simple", "multi_turn_base", "simple_java"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func ExampleSuite() {
	for c, err := range bfcl.Suite(small, "live_simple") {
		if err != nil {
			log.Fatal(err)
		}
		// A model is given c.Turns[0] and c.Tools, and calls:
		calls := []lathe.ToolCall{{Name: "mail_send", Arguments: `{"to":"ann"}`}}
		fmt.Println(c.ID, c.ScoreCalls(calls).Valid)
	}
	// Output: live_simple_0-0-0 true
}

func ExampleScorer() {
	s := bfcl.NewScorer(small)
	fmt.Println(s.Score("live_simple", "live_simple_0-0-0", []byte(`[{"mail.send":{"to":7}}]`)).ErrorType)
	// Output: type_error:simple
}
