package builtin_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/tool/builtin"
)

func workspace(t testing.TB, opts *builtin.WorkspaceOptions) *builtin.Workspace {
	t.Helper()
	w, err := builtin.NewWorkspace(opts)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func snapshot(t testing.TB, w *builtin.Workspace, pointers ...string) string {
	t.Helper()
	b, err := w.Snapshot(pointers...)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestSnapshot(t *testing.T) {
	t.Parallel()
	w := workspace(t, &builtin.WorkspaceOptions{ID: "ws", Facts: json.RawMessage(`{"n":12345678901234567890}`),
		Draft: json.RawMessage(`{"a/b":{"~":[1,{"x":"<y>"}]}}`), Locks: []string{"/draft/z"}})
	want := `{"draft":{"a/b":{"~":[1,{"x":"<y>"}]}},"facts":{"n":12345678901234567890},"id":"ws","locks":{"paths":["/draft/z"]},` +
		`"ui_state":{},"versions":{"draft_etag":"draft:1","facts_etag":"facts:1"}}`
	if got := snapshot(t, w); got != want {
		t.Errorf("snapshot\n%s\nwant\n%s", got, want)
	}
	want = `{"/draft/a~1b/~0/1/x":"<y>","/draft/none":null,"/facts/n":12345678901234567890,"/versions/draft_etag":"draft:1"}`
	if got := snapshot(t, w, "/draft/a~1b/~0/1/x", "/draft/none", "/facts/n", "/versions/draft_etag"); got != want {
		t.Errorf("select\n%s\nwant\n%s", got, want)
	}
	for _, bad := range []string{"draft", "/a~2", "/a~", "/" + strings.Repeat("x", 2000)} {
		if _, err := w.Snapshot(bad); err == nil {
			t.Errorf("pointer %.20q was taken", bad)
		}
	}
}

func TestPatchDraft(t *testing.T) {
	t.Parallel()
	num := func(i int) *int { return &i }
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	for _, tt := range []struct {
		name  string
		draft string
		ops   []builtin.PatchOp
		etag  string
		want  string // the draft, "" where the patch is refused
		tag   string
		n     int
	}{
		{"set", `{}`, []builtin.PatchOp{{Op: "set", Path: "/draft/foo", Value: raw(`"bar"`)}}, "", `{"foo":"bar"}`, "draft:2", 1},
		{"set makes objects on the way", `{}`, []builtin.PatchOp{{Op: "set", Path: "/draft/a/b/c", Value: raw(`1`)}}, "", `{"a":{"b":{"c":1}}}`, "draft:2", 1},
		{"set escaped", `{}`, []builtin.PatchOp{{Op: "set", Path: "/draft/a~1b~0", Value: raw(`null`)}}, "", `{"a/b~":null}`, "draft:2", 1},
		{"set in an array", `{"a":[1,2]}`, []builtin.PatchOp{{Op: "set", Path: "/draft/a/1", Value: raw(`3`)}}, "", `{"a":[1,3]}`, "draft:2", 1},
		{"set beyond an array", `{"a":[1,2]}`, []builtin.PatchOp{{Op: "set", Path: "/draft/a/2", Value: raw(`3`)}}, "", "", "", 0},
		{"set through a scalar", `{"a":1}`, []builtin.PatchOp{{Op: "set", Path: "/draft/a/b", Value: raw(`3`)}}, "", "", "", 0},
		{"set without value", `{}`, []builtin.PatchOp{{Op: "set", Path: "/draft/a"}}, "", "", "", 0},
		{"delete", `{"a":1,"b":2}`, []builtin.PatchOp{{Op: "delete", Path: "/draft/a"}}, "", `{"b":2}`, "draft:2", 1},
		{"delete an element", `{"a":[1,2,3]}`, []builtin.PatchOp{{Op: "delete", Path: "/draft/a/1"}}, "", `{"a":[1,3]}`, "draft:2", 1},
		{"delete nothing", `{"a":1}`, []builtin.PatchOp{{Op: "delete", Path: "/draft/b/c"}}, "", `{"a":1}`, "draft:1", 0},
		{"append", `{"a":[1]}`, []builtin.PatchOp{{Op: "append", Path: "/draft/a", Value: raw(`2`)}}, "", `{"a":[1,2]}`, "draft:2", 1},
		{"append makes the array", `{}`, []builtin.PatchOp{{Op: "append", Path: "/draft/a", Value: raw(`2`)}}, "", `{"a":[2]}`, "draft:2", 1},
		{"append to an object", `{"a":{}}`, []builtin.PatchOp{{Op: "append", Path: "/draft/a", Value: raw(`2`)}}, "", "", "", 0},
		{"insert", `{"a":[1,3]}`, []builtin.PatchOp{{Op: "insert", Path: "/draft/a", Value: raw(`2`), Index: num(1)}}, "", `{"a":[1,2,3]}`, "draft:2", 1},
		{"insert makes the array", `{}`, []builtin.PatchOp{{Op: "insert", Path: "/draft/a", Value: raw(`2`), Index: num(0)}}, "", `{"a":[2]}`, "draft:2", 1},
		{"insert beyond the end", `{"a":[1]}`, []builtin.PatchOp{{Op: "insert", Path: "/draft/a", Value: raw(`2`), Index: num(2)}}, "", "", "", 0},
		{"insert without index", `{"a":[1]}`, []builtin.PatchOp{{Op: "insert", Path: "/draft/a", Value: raw(`2`)}}, "", "", "", 0},
		{"other roots", `{}`, []builtin.PatchOp{{Op: "set", Path: "/facts/a", Value: raw(`1`)}}, "", "", "", 0},
		{"the draft itself", `{}`, []builtin.PatchOp{{Op: "set", Path: "/draft", Value: raw(`1`)}}, "", "", "", 0},
		{"other ops", `{}`, []builtin.PatchOp{{Op: "move", Path: "/draft/a", Value: raw(`1`)}}, "", "", "", 0},
		{"all or nothing", `{"a":1}`, []builtin.PatchOp{{Op: "set", Path: "/draft/a", Value: raw(`2`)}, {Op: "append", Path: "/draft/a", Value: raw(`1`)}}, "", "", "", 0},
		{"right etag", `{}`, []builtin.PatchOp{{Op: "set", Path: "/draft/a", Value: raw(`2`)}}, "draft:1", `{"a":2}`, "draft:2", 1},
		{"wrong etag", `{}`, []builtin.PatchOp{{Op: "set", Path: "/draft/a", Value: raw(`2`)}}, "draft:2", "", "", 0},
		{"no ops", `{}`, nil, "", `{}`, "draft:1", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := workspace(t, &builtin.WorkspaceOptions{Draft: raw(tt.draft)})
			res, err := w.PatchDraft(tt.ops, tt.etag)
			if (err == nil) != (tt.want != "") {
				t.Fatalf("error %v", err)
			}
			wantRes, want := builtin.PatchResult{DraftETag: tt.tag, Applied: tt.n}, tt.want
			if err != nil {
				wantRes, want = builtin.PatchResult{}, tt.draft // nothing has changed
			}
			if diff := cmp.Diff(wantRes, res); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			if got := snapshot(t, w, "/draft"); got != `{"/draft":`+want+`}` {
				t.Errorf("draft %s, want %s", got, want)
			}
		})
	}
}

func TestStateTools(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, tool, args string
		code             lathe.Code
		want             string
	}{
		{"get", "state_get", `{"select":["/draft/foo"]}`, "", `{"/draft/foo":null}`},
		{"get with the id", "state_get", `{"workspace_id":"ws","select":["/draft/foo"]}`, "", `{"/draft/foo":null}`},
		{"get with the word", "state_get", `{"workspace_id":"workspace_id","select":[]}`, "", `{"draft":{},`},
		{"get another", "state_get", `{"workspace_id":"other"}`, lathe.CodeInvalidArguments, "no workspace"},
		{"get a bad pointer", "state_get", `{"select":["draft"]}`, lathe.CodeInvalidArguments, "starts with /"},
		{"patch", "state_patch", `{"request_id":"r","ops":[{"op":"set","path":"/draft/foo","value":"bar"}]}`, "", `{"draft_etag":"draft:2","applied":1}`},
		{"ops is a string", "state_patch", `{"request_id":"r","ops":"set"}`, lathe.CodeInvalidArguments, `"pointer":"/ops"`},
		{"ops is empty", "state_patch", `{"request_id":"r","ops":[]}`, lathe.CodeInvalidArguments, `"pointer":"/ops"`},
		{"no request id", "state_patch", `{"ops":[{"op":"set","path":"/draft/foo","value":1}]}`, lathe.CodeInvalidArguments, "request_id"},
		{"another path", "state_patch", `{"request_id":"r","ops":[{"op":"set","path":"/draft/bar","value":1}]}`, lathe.CodeInvalidArguments, "/draft/foo"},
		{"another op", "state_patch", `{"request_id":"r","ops":[{"op":"delete","path":"/draft/foo"}]}`, lathe.CodeInvalidArguments, "/draft/foo"},
		{"no value", "state_patch", `{"request_id":"r","ops":[{"op":"set","path":"/draft/foo"}]}`, lathe.CodeInvalidArguments, "value is missing"},
		{"hidden", "facts_commit", `{"workspace_id":"ws","request_id":"r","proposal_id":"p","user_confirmed":true}`, lathe.CodeUnknownTool, `["state_get","state_patch"]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := workspace(t, &builtin.WorkspaceOptions{ID: "ws"})
			got := run(t, w.Tools(), tt.tool, tt.args)
			if got.Code != tt.code || !strings.Contains(got.Content, tt.want) {
				t.Errorf("%q %s, want %q with %s", got.Code, got.Content, tt.code, tt.want)
			}
		})
	}
}

func TestWorkspaceIsRefused(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{`[]`, `1`, `{`, `null`} {
		if _, err := builtin.NewWorkspace(&builtin.WorkspaceOptions{Draft: json.RawMessage(raw)}); err == nil {
			t.Errorf("draft %s was taken", raw)
		}
	}
	if a, b := workspace(t, nil).ID(), workspace(t, nil).ID(); a == b || len(a) != 36 {
		t.Errorf("ids %q and %q", a, b)
	}
}
