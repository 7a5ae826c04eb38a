package builtin

import (
	"context"
	"encoding/json"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/tool"
)

// writable is the only path that a model may set by state_patch.
const writable = "/draft/foo"

// Tools returns the tools with which a model uses the workspace: state_get, state_patch and facts_commit, which is hidden and always fails.
// state_patch only accepts the operation set on the path /draft/foo. They require no workspace_id; if one is given, it must be ID() or the
// word workspace_id.
func (w *Workspace) Tools() []lathe.Tool {
	show := []string{"*"}
	return []lathe.Tool{
		tool.Func("state_get", "Read the workspace state: all of it, or the values at the JSON pointers in select.", w.get,
			&tool.FuncOptions{Effect: lathe.ReadOnly, Show: show, Origin: origin, Schema: json.RawMessage(getSchema)}),
		tool.Func("state_patch", "Change the draft of the workspace. All operations are applied, or none.", w.patch,
			&tool.FuncOptions{Effect: lathe.Writes, Show: show, Origin: origin, Schema: json.RawMessage(patchSchema)}),
		tool.Func("facts_commit", "Commit a proposal to the facts, once the user has confirmed it.", w.commit,
			&tool.FuncOptions{Effect: lathe.Writes, Show: show, Origin: origin, Schema: json.RawMessage(commitSchema), Hidden: true}),
	}
}

const (
	getSchema = `{"type":"object","properties":{` +
		`"workspace_id":{"type":"string","description":"the current workspace when left out"},` +
		`"select":{"type":"array","items":{"type":"string"},"description":"JSON pointers such as /draft/foo"}},` +
		`"additionalProperties":false}`
	patchSchema = `{"type":"object","properties":{` +
		`"workspace_id":{"type":"string","description":"the current workspace when left out"},` +
		`"request_id":{"type":"string"},` +
		`"ops":{"type":"array","minItems":1,"items":{"type":"object","properties":{` +
		`"op":{"type":"string","description":"set"},"path":{"type":"string","description":"JSON pointer such as /draft/foo"},"value":{},"index":{"type":"integer"}},` +
		`"required":["op","path"],"additionalProperties":false}}},` +
		`"required":["request_id","ops"],"additionalProperties":false}`
	commitSchema = `{"type":"object","properties":{` +
		`"workspace_id":{"type":"string"},"request_id":{"type":"string"},"proposal_id":{"type":"string"},"user_confirmed":{"type":"boolean"}},` +
		`"required":["workspace_id","request_id","proposal_id","user_confirmed"],"additionalProperties":false}`
)

type getArgs struct {
	WorkspaceID string   `json:"workspace_id"`
	Select      []string `json:"select"`
}

type patchArgs struct {
	WorkspaceID string    `json:"workspace_id"`
	RequestID   string    `json:"request_id"`
	Ops         []PatchOp `json:"ops"`
}

type commitArgs struct {
	WorkspaceID   string `json:"workspace_id"`
	RequestID     string `json:"request_id"`
	ProposalID    string `json:"proposal_id"`
	UserConfirmed bool   `json:"user_confirmed"`
}

func (w *Workspace) get(_ context.Context, in getArgs) (json.RawMessage, error) {
	if err := w.mine(in.WorkspaceID); err != nil {
		return nil, err
	}
	data, err := w.Snapshot(in.Select...)
	if err != nil {
		return nil, tool.Fail(lathe.CodeInvalidArguments, "select: %s", err)
	}
	return data, nil
}

func (w *Workspace) patch(_ context.Context, in patchArgs) (PatchResult, error) {
	if err := w.mine(in.WorkspaceID); err != nil {
		return PatchResult{}, err
	}
	if len(in.Ops) == 0 {
		return PatchResult{}, tool.Fail(lathe.CodeInvalidArguments, "ops must be an array with at least one operation")
	}
	for i, op := range in.Ops {
		if op.Op != "set" || op.Path != writable {
			return PatchResult{}, tool.Fail(lathe.CodeInvalidArguments, "ops/%d: only the op set on the path %s is allowed", i, writable)
		}
	}
	res, err := w.PatchDraft(in.Ops, "")
	if err != nil {
		return PatchResult{}, tool.Fail(lathe.CodeInvalidArguments, "%s", err)
	}
	return res, nil
}

// commit always fails: the tool is hidden from models, and facts cannot be committed.
func (w *Workspace) commit(_ context.Context, in commitArgs) (PatchResult, error) {
	if err := w.mine(in.WorkspaceID); err != nil {
		return PatchResult{}, err
	}
	return PatchResult{}, tool.Fail(lathe.CodeUnavailable, "facts cannot be committed here")
}

// mine returns an error for the id of another workspace. Models without an id often send the name of the parameter.
func (w *Workspace) mine(id string) error {
	if id == "" || id == "workspace_id" || id == w.id {
		return nil
	}
	return tool.Fail(lathe.CodeInvalidArguments, "there is no workspace with this workspace_id: leave it out to mean the current one")
}
