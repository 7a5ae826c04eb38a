package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"slices"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	problems "github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/gateway/splice"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/vendor"
	"github.com/lathe-run/lathe/store"
)

// All clients of the server share the account at the model's vendor whose key it has. A client may name an object of the account, such
// as a file or a container, only if its key may (Key.VendorObjects), or if the object was in an answer to the same key. And the vendor
// executes only tools that the key may use (Key.VendorTools). Every entry point that takes content for a model calls [knownObjects.check]:
// makePlan for the messages of runs, [chat.accept] and countTokens for bodies on the wires of vendors, which may be relayed.

// mayName reports whether the key may name the object whatever it was given.
func (k *Key) mayName(o *vendor.Object) bool {
	return slices.ContainsFunc(k.VendorObjects, func(s string) bool { return s == "*" || s == o.Kind || o.ID != "" && s == o.ID })
}

// limitsObjects reports whether there are objects that the caller may not name.
func limitsObjects(c *caller) bool {
	return c.setup.needsKey() && !slices.Contains(c.key.VendorObjects, "*")
}

// check refuses content that names an object of the vendor's account which the caller may not name. in finds the objects.
func (h *knownObjects) check(ctx context.Context, c *caller, in func(visit func(vendor.Object) bool)) (p *problem) {
	if !limitsObjects(c) {
		return nil
	}
	in(func(o vendor.Object) bool {
		if c.key.mayName(&o) {
			return true
		}
		had, err := h.has(ctx, c.key.Name, o.ID)
		if err != nil {
			p = problems.NotNow(err)
		}
		if had || err != nil {
			return had
		}
		p = forbidden("vendor_object_forbidden", "This key may not name objects of the vendor's account (%s) that no answer to it had. Send the content itself, "+"or have the operator allow it with keys.NAME.vendor_objects.", o.Kind).WithParam(o.Path)
		return false
	})
	return p
}

// objectsOf returns the objects that the body of a request names. Without references, those that the server resolves are left out.
func objectsOf(body []byte, references bool) func(func(vendor.Object) bool) {
	return func(visit func(vendor.Object) bool) {
		vendor.InRequest(body, func(o vendor.Object) bool { return o.Reference && !references || visit(o) })
	}
}

// withholdTools removes the vendor's tools that the caller may not use from a request, and returns their types. It refuses a request
// whose tool choice forces one of them.
func withholdTools(c *caller, pr *protocol, body []byte) (_ []byte, withheld []string, p *problem) {
	if !c.setup.needsKey() || c.key.VendorTools == nil {
		return body, nil, nil
	}
	w := vendor.Withhold(body, c.key.VendorTools)
	if w.Forced != "" {
		return nil, nil, forbidden("tool_forbidden", "The tool choice forces a tool of type %.64q, which the vendor would execute and this key may not use: keys.NAME.vendor_tools.", w.Forced).WithParam(pr.tools)
	}
	for _, typ := range w.Tools {
		if !vendor.IsToolMember(typ) {
			typ = pr.tools + "." + typ
		}
		withheld = append(withheld, typ)
	}
	return w.Body, withheld, nil
}

// knownObjects are the objects of the vendor's account that were in answers, as digests of the key and the id. The store of requests
// has them, so that other processes know them, and removes them with the run or when they are old.
type knownObjects struct {
	requests store.RequestStore
	known    splice.KeySet // digests that the store has, so that an object is looked up once and not at each place that names it
	now      func() time.Time
}

func newKnownObjects(index store.RunIndex, now func() time.Time) *knownObjects {
	requests, ok := index.(store.RequestStore)
	if !ok {
		requests = store.NewMemory(nil)
	}
	return &knownObjects{requests: requests, now: now}
}

func handedDigest(principal, id string) store.RequestDigest {
	return sha256.Sum256([]byte("object of the vendor\x00" + principal + "\x00" + id))
}

// has reports whether an answer to the principal had the object. The error is that of a store that does not answer.
func (h *knownObjects) has(ctx context.Context, principal, id string) (bool, error) {
	digest := handedDigest(principal, id)
	if id == "" || h.known.Has(splice.Key(digest), h.now()) {
		return id != "", nil
	}
	_, err := h.requests.FindRequest(ctx, digest)
	if lathe.CodeOf(err) == lathe.CodeNotFound {
		return false, nil
	}
	if err == nil {
		h.known.Add(splice.Key(digest), h.now())
	}
	return err == nil, err
}

// put records that the answer of the run had the object.
func (h *knownObjects) put(ctx context.Context, principal, id, runID string) error {
	digest := handedDigest(principal, id)
	err := h.requests.PutRequest(ctx, digest, runID, "")
	if lathe.CodeOf(err) != lathe.CodeConflict {
		return err
	}
	earlier, err := h.requests.FindRequest(ctx, digest)
	if err != nil {
		return err
	}
	return h.requests.PutRequest(ctx, digest, runID, earlier.RunID) // or another answer has it at the same time, which is as good
}

// newObjectNote returns the note for a run of a key that the caller begins or resumes; nil: it needs none.
func newObjectNote(co *core, c *caller, principal string) *objectNote {
	if c.setup == nil || !c.setup.needsKey() || principal == c.key.Name && !limitsObjects(c) {
		return nil
	}
	return &objectNote{core: co, principal: principal}
}

// An objectNote is a sink that records the objects in the answers of the models of a run, so that further requests of its key may name
// them. It records them before the run continues, whether a client reads the answer or not. The run's goroutine uses it. nil records
// nothing.
type objectNote struct {
	core      *core
	principal string
	ids       map[string]bool // that are not recorded yet
}

// with returns the sinks of a run with the note.
func (n *objectNote) with(sinks ...event.Sink) []event.Sink {
	if n == nil {
		return sinks
	}
	return append(sinks, n)
}

// Emit implements [event.Sink]. n may be nil.
func (n *objectNote) Emit(_ context.Context, e event.Event) {
	d, ok := e.Data.(*event.ModelCallFinished)
	if !ok || n == nil {
		return
	}
	if d.Message != nil {
		vendor.InAnswerMessage(d.Message, n.add)
	}
	if len(n.ids) > 0 {
		n.record(e.RunID)
	}
}

// maxNotedObjects limits the objects of one answer that are recorded.
const maxNotedObjects = 1024

func (n *objectNote) add(o vendor.Object) bool {
	if n.ids == nil {
		n.ids = map[string]bool{}
	}
	if o.ID != "" && len(n.ids) < maxNotedObjects {
		n.ids[o.ID] = true
	}
	return len(n.ids) < maxNotedObjects
}

// relayed notes the objects of bytes that are relayed: a whole answer, or events of a stream. n may be nil.
func (n *objectNote) relayed(raw []byte) {
	if n == nil {
		return
	}
	items := n.core.opts.Index == nil // with a store, answers that the vendor stores are not relayed
	if at := rawjson.SkipSpace(raw, 0); at < len(raw) && raw[at] == '{' {
		if rawjson.IsObject(raw, rawjson.Limits{}) {
			vendor.InAnswer(raw, items, n.add)
		}
		return
	}
	for line := range bytes.Lines(raw) {
		data, ok := bytes.CutPrefix(line, []byte("data:"))
		if data = bytes.TrimSpace(data); ok && mayName(data) && rawjson.IsObject(data, rawjson.Limits{}) {
			vendor.InAnswer(data, items, n.add)
		}
	}
}

// mayName reports whether an event can have an object: those with a piece of text, which are most, have none.
func mayName(event []byte) bool {
	return !bytes.Contains(event, []byte(`.delta"`)) && !bytes.Contains(event, []byte(`"content_block_delta"`))
}

// record records the objects that the note has.
func (n *objectNote) record(runID string) {
	ctx, cancel := context.WithTimeout(context.Background(), n.core.opts.Limits.WriteTimeout) // also of a client that has left
	defer cancel()
	for id := range n.ids {
		if err := n.core.objects.put(ctx, n.principal, id, runID); err != nil {
			n.core.opts.Log.Warn("objects of an answer could not be recorded: the client may not name them", "run_id", runID, "code", lathe.CodeOf(err))
			break
		}
	}
	n.ids = nil
}
