package server

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/gateway/places"
	"github.com/lathe-run/lathe/internal/gateway/splice"
	"github.com/lathe-run/lathe/internal/wire"
)

// Some model servers refuse reasoning that another model wrote (Anthropic, Gemini), or reasoning in a member that they do
// not use themselves (Groq and Cerebras refuse reasoning_content). A message of a client names neither the model nor the
// member: it has the text, in the member in which this server sends it, and the opaque data (a signature) if the client and
// the model use the same wire. Therefore this server records the origin of the reasoning that it sends.

// maxOrigins is the maximum number of stored origins, of about 150 bytes each. One piece of reasoning has two to six of
// them.
const maxOrigins = 30_000

// reasoningOrigins stores, in this process, which model entry wrote the reasoning that clients were sent, and in which
// member. It stores hashes, the last maxOrigins of them. Reasoning of unknown origin is sent to the model of the request in
// the member in which the client sent it.
type reasoningOrigins struct {
	mu   sync.Mutex
	of   map[originKey]string // the member, by hash
	ring []originKey          // the keys in the order in which they were added; next is the oldest once it is full
	next int
}

// An originKey is the hash of reasoning for a principal: of its opaque data, which no other model writes, or of its text if
// it has none. Reasoning has two keys: one with the name of the model entry, and one without.
type originKey [sha256.Size]byte

// originKeys returns the two keys of reasoning that the principal was sent: with the name of the entry, and without.
func originKeys(principal, entry string, r *lathe.Reasoning) (ofEntry, ofAny originKey) {
	kind, value := "text", r.Text
	if r.Data != "" {
		kind, value = "data", r.Data
	}
	sum := sha256.Sum256([]byte(value))
	key := func(entry string) originKey {
		return sha256.Sum256([]byte(strconv.Quote(principal) + strconv.Quote(entry) + kind + string(sum[:])))
	}
	return key(entry), key("")
}

// note stores that the entry wrote the reasoning that the principal was sent. Some clients send the text without the data,
// and clients of chat completions join the texts of an answer, so the hashes of these forms are stored, too.
func (o *reasoningOrigins) note(principal, entry string, parts []lathe.Reasoning) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var joined strings.Builder
	add := func(r *lathe.Reasoning) {
		if r.Data == "" && r.Text == "" {
			return
		}
		ofEntry, ofAny := originKeys(principal, entry, r)
		o.add(ofAny, r.Field) // added first, so it is removed first: ofAny without ofEntry would mean that another entry wrote the reasoning
		o.add(ofEntry, r.Field)
	}
	for i := range parts {
		r := parts[i]
		joined.WriteString(r.Text)
		add(&r)
		if r.Data != "" {
			r.Data = ""
			add(&r)
		}
	}
	if len(parts) > 1 {
		add(&lathe.Reasoning{Text: joined.String(), Field: parts[0].Field})
	}
}

// add stores a key. o.mu must be locked.
func (o *reasoningOrigins) add(key originKey, field string) {
	if o.of == nil {
		o.of = map[originKey]string{}
	}
	if _, known := o.of[key]; !known {
		if len(o.ring) < maxOrigins {
			o.ring = append(o.ring, key)
		} else {
			delete(o.of, o.ring[o.next])
			o.ring[o.next] = key
			o.next = (o.next + 1) % maxOrigins
		}
	}
	o.of[key] = field
}

// find reports whether the entry may get the reasoning in a client's message, and returns the member that the entry uses
// for it; "": the member it is in.
func (o *reasoningOrigins) find(principal, entry string, r *lathe.Reasoning) (field string, ok bool) {
	ofEntry, ofAny := originKeys(principal, entry, r)
	o.mu.Lock()
	defer o.mu.Unlock()
	if field, ok = o.of[ofEntry]; ok {
		return field, true
	}
	_, ofOthers := o.of[ofAny]
	return "", !ofOthers
}

// apply returns the messages as the entry may get them: without reasoning that only other entries wrote, and with its own
// in the member that the entry used. left contains the paths of what is left out, at most [wire.MaxDropped]. changed is
// false if out is equal to messages.
func (o *reasoningOrigins) apply(principal, entry string, messages []lathe.Message) (out []lathe.Message, left []string, changed bool) {
	for i := range messages {
		parts, paths := o.partsFor(principal, entry, &messages[i], i)
		if parts == nil {
			continue
		}
		if !changed {
			messages, changed = slices.Clone(messages), true
		}
		messages[i].Parts = parts
		details := func(x lathe.Member) bool { return x.Name == "reasoning_details" }
		if len(paths) > 0 && slices.ContainsFunc(messages[i].Extra, details) {
			messages[i].Extra = slices.DeleteFunc(slices.Clone(messages[i].Extra), details)
			paths = append(paths, fmt.Sprintf("messages[%d].reasoning_details", i))
		}
		left = append(left, paths[:min(len(paths), wire.MaxDropped-len(left))]...)
	}
	return messages, left, changed
}

// partsFor returns the parts of message i as the entry may get them, and the paths of those that are left out. It returns
// nil parts if nothing changes.
func (o *reasoningOrigins) partsFor(principal, entry string, m *lathe.Message, i int) (parts []lathe.Part, left []string) {
	if !slices.ContainsFunc(m.Parts, isReasoning) {
		return nil, nil
	}
	parts = make([]lathe.Part, 0, len(m.Parts))
	moved := false
	for j, p := range m.Parts {
		if isReasoning(p) {
			r := p.(lathe.Reasoning)
			field, ok := o.find(principal, entry, &r)
			if !ok {
				left = append(left, fmt.Sprintf("messages[%d].parts[%d]", i, j))
				continue
			}
			if field != "" && field != r.Field {
				r.Field, moved = field, true
				p = r
			}
		}
		parts = append(parts, p)
	}
	if !moved && left == nil {
		return nil, nil
	}
	return parts, left
}

// isReasoning reports whether a part is reasoning of a model, and not a carrier.
func isReasoning(p lathe.Part) bool {
	_, ok := p.(lathe.Reasoning)
	return ok && !splice.IsCarrier(p)
}

// returnReasoning removes from the request the reasoning that other entries wrote, lists its paths as dropped, and moves
// the reasoning of the request's own entry into the member that the entry uses. It reports whether the messages have
// changed.
func returnReasoning(a *chat) bool {
	req := a.req
	given, left, changed := a.handler.reasoning.apply(a.caller.key.Name, req.Model, req.Messages)
	if len(left) > 0 {
		at := places.Of(a.protocol.Wire(), req.Body, a.parsed, req.Messages)
		for _, path := range left {
			a.dropped = append(a.dropped, at(path))
		}
	}
	req.Messages = given
	return changed
}

// noteReasoning records the origin of the reasoning that the run has added to the conversation.
func (a *exchange) noteReasoning(res *event.Result) {
	var all []lathe.Reasoning
	for _, m := range a.added(res) {
		for _, p := range m.Parts {
			if r, ok := p.(lathe.Reasoning); ok && m.Role == lathe.RoleAssistant {
				all = append(all, r)
			}
		}
	}
	if len(all) > 0 {
		a.handler.reasoning.note(a.caller.key.Name, a.req.Model, all)
	}
}
