package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"iter"
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

// All clients of the server share the account at the model's vendor to which the server's key belongs. A client may name an
// object of that account, such as a file or a container, only if its key allows it (Key.VendorObjects) or if the object was
// in an answer to the same key. The vendor executes only tools that the key allows (Key.VendorTools). Every entry point
// that accepts content for a model calls [knownObjects.check]: makePlan for the messages of runs, and [exchange.accept] and
// countTokens for bodies on the wires of vendors, which may be relayed.

// mayName reports whether the configuration of the key allows it to name the object, independent of earlier answers.
func (k *Key) mayName(o *vendor.Object) bool {
	return slices.ContainsFunc(k.VendorObjects, func(s string) bool { return s == "*" || s == o.Kind || o.ID != "" && s == o.ID })
}

// limitsObjects reports whether the objects that the caller may name are limited.
func limitsObjects(c *caller) bool {
	return c.setup.needsKey() && !slices.Contains(c.key.VendorObjects, "*")
}

// check returns a problem if one of the objects, which a content names, may not be named by the caller.
func (h *knownObjects) check(ctx context.Context, c *caller, objects iter.Seq[vendor.Object]) *problem {
	if !limitsObjects(c) {
		return nil
	}
	for o := range objects {
		if c.key.mayName(&o) {
			continue
		}
		had, err := h.has(ctx, c.key.Name, o.ID)
		switch {
		case err != nil:
			return problems.NotNow(err)
		case !had:
			return forbidden("vendor_object_forbidden", "This key may not name objects of the vendor's account (%s) that no answer to it had. Send the content itself, or have the operator allow it with keys.NAME.vendor_objects.", o.Kind).WithParam(o.Path)
		}
	}
	return nil
}

// objectsIn returns the objects that the body of a request names.
func objectsIn(body []byte) iter.Seq[vendor.Object] {
	return func(yield func(vendor.Object) bool) { vendor.InRequest(body, yield) }
}

// withoutReferences returns the objects without references to items, which this server resolves itself if the request is not
// relayed.
func withoutReferences(objects iter.Seq[vendor.Object]) iter.Seq[vendor.Object] {
	return func(yield func(vendor.Object) bool) {
		objects(func(o vendor.Object) bool { return o.Reference || yield(o) })
	}
}

// withholdTools removes from the body the tools of the vendor that the caller may not use, and returns their types. It
// returns a problem if the tool choice forces one of them.
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

// knownObjects records which objects of the vendor's account were in answers to which key, as digests of key and id. The
// records are in the store of requests: other processes read them there, and the store removes them with the run or when
// they are old.
type knownObjects struct {
	requests store.RequestStore
	known    splice.KeySet // digests known to be in the store, so that each object is looked up once
	now      func() time.Time
}

// requestStore returns the store of runs if it stores requests, too, and a store in memory otherwise.
func requestStore(index store.RunIndex) store.RequestStore {
	if requests, ok := index.(store.RequestStore); ok {
		return requests
	}
	return store.NewMemory(nil)
}

// handedDigest returns the digest under which an object in an answer to the principal is recorded.
func handedDigest(principal, id string) store.RequestDigest {
	return sha256.Sum256([]byte("object of the vendor\x00" + principal + "\x00" + id))
}

// has reports whether the object was in an answer to the principal. It returns an error if the store fails.
func (h *knownObjects) has(ctx context.Context, principal, id string) (bool, error) {
	if id == "" {
		return false, nil
	}
	digest := handedDigest(principal, id)
	if h.known.Has(splice.Key(digest), h.now()) {
		return true, nil
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
	return h.requests.PutRequest(ctx, digest, runID, earlier.RunID) // a conflict means that another answer with the object was recorded at the same time, which serves as well
}

// newObjectNote returns the sink that records objects for a run of the principal, which the caller begins or resumes; nil
// if objects are not limited.
func newObjectNote(co *core, c *caller, principal string) *objectNote {
	if c.setup == nil || !c.setup.needsKey() || principal == c.key.Name && !limitsObjects(c) {
		return nil
	}
	return &objectNote{core: co, principal: principal, ids: map[string]bool{}}
}

// An objectNote is a sink that records the objects in the answers of the models of a run, so that later requests of its key
// may name them. It records them before the run continues, whether or not a client reads the answer. Only the goroutine of
// the run uses it. A nil objectNote records nothing.
type objectNote struct {
	core      *core
	principal string
	ids       map[string]bool // the ids that are not recorded yet
}

// with returns the sinks and the note, or only the sinks if n is nil.
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

// maxNotedObjects is the maximum number of objects of one answer that are recorded.
const maxNotedObjects = 1024

// add collects the id of an object. It returns false when maxNotedObjects are collected.
func (n *objectNote) add(o vendor.Object) bool {
	if o.ID != "" && len(n.ids) < maxNotedObjects {
		n.ids[o.ID] = true
	}
	return len(n.ids) < maxNotedObjects
}

// addRelayed adds the objects in relayed bytes: a whole answer, or events of a stream. n may be nil.
func (n *objectNote) addRelayed(raw []byte) {
	if n == nil {
		return
	}
	items := n.core.opts.Index == nil // if there is a store, answers that the vendor stores are not relayed
	if at := rawjson.SkipSpace(raw, 0); at < len(raw) && raw[at] == '{' {
		if rawjson.IsObject(raw, rawjson.Limits{}) {
			vendor.InAnswer(raw, items, n.add)
		}
		return
	}
	for line := range bytes.Lines(raw) {
		data, ok := bytes.CutPrefix(line, []byte("data:"))
		data = bytes.TrimSpace(data)
		if ok && mayHaveObjects(data) && rawjson.IsObject(data, rawjson.Limits{}) {
			vendor.InAnswer(data, items, n.add)
		}
	}
}

// mayHaveObjects reports whether a streamed event can contain an object. Events with a piece of text, which are the most frequent,
// contain none.
func mayHaveObjects(event []byte) bool {
	return !bytes.Contains(event, []byte(`.delta"`)) && !bytes.Contains(event, []byte(`"content_block_delta"`))
}

// record stores the ids in n.ids and empties it. If the store fails, it logs that.
func (n *objectNote) record(runID string) {
	ctx, cancel := context.WithTimeout(context.Background(), n.core.opts.Limits.WriteTimeout) // not the request's context: the client may have left
	defer cancel()
	for id := range n.ids {
		if err := n.core.objects.put(ctx, n.principal, id, runID); err != nil {
			n.core.opts.Log.Warn("objects of an answer could not be recorded: the client may not name them", "run_id", runID, "code", lathe.CodeOf(err))
			break
		}
	}
	clear(n.ids)
}
