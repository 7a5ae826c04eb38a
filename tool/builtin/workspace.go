package builtin

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// A Workspace is a JSON state that a model reads by tools: facts, which do not change, and a draft, which it changes. Its methods may be
// called from several goroutines at once.
type Workspace struct {
	id string

	mu       sync.Mutex
	facts    map[string]any
	draft    map[string]any
	locks    []string
	ui       map[string]any
	factsVer int
	draftVer int
}

// WorkspaceOptions are the initial state of a workspace. JSON values must be objects; nil is {}. Patches change Draft; Facts, UIState and
// Locks do not change.
type WorkspaceOptions struct {
	ID      string // "": a random UUID
	Facts   json.RawMessage
	Draft   json.RawMessage
	UIState json.RawMessage
	Locks   []string // paths, shown to the model; patches of these paths are not refused
}

// NewWorkspace returns a workspace with the given state and version 1 of facts and draft. opts may be nil. The error names the option that
// is not a JSON object.
func NewWorkspace(opts *WorkspaceOptions) (*Workspace, error) {
	var o WorkspaceOptions
	if opts != nil {
		o = *opts
	}
	w := &Workspace{id: o.ID, locks: append([]string{}, o.Locks...), factsVer: 1, draftVer: 1}
	if w.id == "" {
		w.id = newUUID()
	}
	for _, part := range []struct {
		name string
		raw  json.RawMessage
		into *map[string]any
	}{{"facts", o.Facts, &w.facts}, {"draft", o.Draft, &w.draft}, {"ui_state", o.UIState, &w.ui}} {
		*part.into = map[string]any{}
		if len(part.raw) == 0 {
			continue
		}
		v, err := rawjson.Value(part.raw)
		obj, ok := v.(map[string]any)
		if err != nil || !ok {
			return nil, fmt.Errorf("builtin: %s of the workspace is not a JSON object", part.name)
		}
		*part.into = obj
	}
	return w, nil
}

// ID returns the id that the tools accept as workspace_id.
func (w *Workspace) ID() string { return w.id }

// Snapshot returns the whole state as an object with id, facts, draft, locks, ui_state and versions. With JSON pointers, it returns an
// object that has a member for each pointer: the value at that place of the state, or null if the state has no such place. The error names
// a pointer that is not valid.
func (w *Workspace) Snapshot(pointers ...string) (json.RawMessage, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := map[string]any{"id": w.id, "facts": w.facts, "draft": w.draft, "locks": map[string]any{"paths": w.locks}, "ui_state": w.ui,
		"versions": map[string]any{"facts_etag": etag("facts", w.factsVer), "draft_etag": etag("draft", w.draftVer)}}
	if len(pointers) == 0 {
		return rawjson.Marshal(all)
	}
	found := make(map[string]any, len(pointers))
	for _, p := range pointers {
		tokens, err := parsePointer(p)
		if err != nil {
			return nil, err
		}
		found[p], _ = lookup(any(all), tokens)
	}
	return rawjson.Marshal(found)
}

// A PatchOp is one change of a draft.
type PatchOp struct {
	Op    string          `json:"op"`              // set, delete, append or insert
	Path  string          `json:"path"`            // a JSON pointer that begins with /draft/
	Value json.RawMessage `json:"value,omitempty"` // required, except for delete
	Index *int            `json:"index,omitempty"` // required for insert: 0 to the length of the array
}

// A PatchResult is the result of [Workspace.PatchDraft].
type PatchResult struct {
	DraftETag string `json:"draft_etag"` // version of the draft afterwards
	Applied   int    `json:"applied"`    // number of operations; a delete of a missing value does not count
}

// PatchDraft applies all operations in order or, on an error, none. It creates missing objects on a path, and a missing array for append and
// insert. If wantETag is not "", it must be the current etag of the draft, or PatchDraft returns an error. The version of the draft increases
// by 1 if Applied is above 0. The texts of the errors are for the model.
func (w *Workspace) PatchDraft(ops []PatchOp, wantETag string) (PatchResult, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if wantETag != "" && wantETag != etag("draft", w.draftVer) {
		return PatchResult{}, errors.New("the draft has changed since: read it again")
	}
	root := any(map[string]any{"draft": clone(w.draft)})
	applied := 0
	for i, op := range ops {
		changed, err := op.apply(&root)
		if err != nil {
			return PatchResult{}, fmt.Errorf("ops/%d: %w", i, err)
		}
		if changed {
			applied++
		}
	}
	if applied > 0 {
		w.draft = root.(map[string]any)["draft"].(map[string]any)
		w.draftVer++
	}
	return PatchResult{etag("draft", w.draftVer), applied}, nil
}

// apply applies the operation to root, which has the member draft. changed is false for a delete of a missing value.
func (op *PatchOp) apply(root *any) (changed bool, err error) {
	if !strings.HasPrefix(op.Path, "/draft/") {
		return false, errors.New("the path must start with /draft/")
	}
	tokens, err := parsePointer(op.Path)
	if err != nil {
		return false, err
	}
	if op.Op == "delete" {
		if _, ok := lookup(*root, tokens); !ok {
			return false, nil
		}
		*root, err = change(*root, tokens, func(any) (any, error) { return absent, nil })
		return err == nil, err
	}
	if op.Op != "set" && op.Op != "append" && op.Op != "insert" {
		return false, errors.New("the op must be set, delete, append or insert")
	}
	if len(op.Value) == 0 {
		return false, errors.New("the value is missing")
	}
	value, err := rawjson.Value(op.Value)
	if err != nil {
		return false, errors.New("the value is not JSON")
	}
	*root, err = change(*root, tokens, func(old any) (any, error) {
		if op.Op == "set" {
			return value, nil
		}
		list, isList := old.([]any)
		if old != absent && !isList {
			return nil, errors.New("there is no array at the path")
		}
		at := len(list)
		if op.Op == "insert" {
			if op.Index == nil || *op.Index < 0 || *op.Index > len(list) {
				return nil, errors.New("the index must be between 0 and the length of the array")
			}
			at = *op.Index
		}
		return slices.Insert(list, at, value), nil
	})
	return err == nil, err
}

func etag(name string, version int) string { return fmt.Sprintf("%s:%d", name, version) }

// newUUID returns a random UUID (RFC 9562, version 4).
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
