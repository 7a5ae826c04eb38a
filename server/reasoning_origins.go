package server

import (
	"crypto/sha256"
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

// Model servers refuse reasoning that they have not written (Anthropic, Gemini), and reasoning in another member than their
// own (Groq and Cerebras refuse reasoning_content). A client's message names neither: it has the text, in the member in which
// this server sends it, and the opaque data (a signature) if the client and the model have the same wire.

// maxOrigins bounds the origins that are stored, about 150 bytes each. Reasoning has two to six of them.
const maxOrigins = 30_000

// reasoningOrigins stores which entry of the models wrote reasoning that clients were sent, and in which member. It holds hashes, the last
// maxOrigins of them, in this process. Reasoning that it does not know goes to the entry of the request, in the member it came in.
type reasoningOrigins struct {
	mu   sync.Mutex
	of   map[originKey]string // the member
	ring []originKey          // in the order in which they came
	next int
}

// An originKey is the hash of reasoning: of its opaque data if it has some, which no other model writes, else of its text. Reasoning
// of one entry has two keys: one with the name of the entry, and one without.
type originKey [sha256.Size]byte

// originKeys returns the keys of reasoning that the principal was sent.
func originKeys(principal, entry string, r *lathe.Reasoning) (own, any originKey) {
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

// note stores that the entry wrote reasoning that the principal was sent. A client that keeps no data sends the text alone, and one of
// chat completions joins the texts of an answer.
func (o *reasoningOrigins) note(principal, entry string, parts []lathe.Reasoning) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var joined strings.Builder
	add := func(r *lathe.Reasoning) {
		if r.Data == "" && r.Text == "" {
			return
		}
		own, any := originKeys(principal, entry, r)
		o.add(any, r.Field) // it is removed first: without it the reasoning is of an unknown origin, and with it alone of another entry
		o.add(own, r.Field)
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

// add stores a key. o.mu is locked.
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

// find reports whether the entry may get reasoning of a client's message, and in which member ("": the one it is in).
func (o *reasoningOrigins) find(principal, entry string, r *lathe.Reasoning) (field string, ok bool) {
	own, any := originKeys(principal, entry, r)
	o.mu.Lock()
	defer o.mu.Unlock()
	if field, ok = o.of[own]; ok {
		return field, true
	}
	_, others := o.of[any]
	return "", !others
}

// apply returns the messages as the entry may get them: without reasoning that only other entries wrote, and with its own in the
// member that it used. left are the paths of what is left out, at most [wire.MaxDropped]. changed is false if the messages are those
// given.
func (o *reasoningOrigins) apply(principal, entry string, messages []lathe.Message) (out []lathe.Message, left []string, changed bool) {
	for i := range messages {
		parts, paths := o.partsFor(principal, entry, &messages[i], i)
		if parts == nil {
			continue
		}
		if !changed {
			messages, changed = slices.Clone(messages), true
		}
		if messages[i].Parts = parts; len(paths) > 0 {
			details := func(x lathe.Member) bool { return x.Name == "reasoning_details" }
			if slices.ContainsFunc(messages[i].Extra, details) {
				messages[i].Extra = slices.DeleteFunc(slices.Clone(messages[i].Extra), details)
				paths = append(paths, "messages["+strconv.Itoa(i)+"].reasoning_details")
			}
		}
		left = append(left, paths[:min(len(paths), wire.MaxDropped-len(left))]...)
	}
	return messages, left, changed
}

// partsFor returns the parts of message i as the entry may get them, and the paths of those that are left out; nil if they are those of
// the message.
func (o *reasoningOrigins) partsFor(principal, entry string, m *lathe.Message, i int) (parts []lathe.Part, left []string) {
	for j, p := range m.Parts {
		keep, changed := true, false
		if r, is := p.(lathe.Reasoning); is && !splice.IsCarrier(p) {
			field, ok := o.find(principal, entry, &r)
			if keep = ok; ok && field != "" && field != r.Field {
				r.Field, changed = field, true
				p = r
			}
		}
		if parts == nil {
			if keep && !changed {
				continue
			}
			parts = append(make([]lathe.Part, 0, len(m.Parts)), m.Parts[:j]...)
		}
		if keep {
			parts = append(parts, p)
		} else {
			left = append(left, "messages["+strconv.Itoa(i)+"].parts["+strconv.Itoa(j)+"]")
		}
	}
	return parts, left
}

// returnReasoning leaves reasoning that other entries wrote out of the request, lists it, and moves that of its entry into the member that it came
// in. It reports whether the messages have changed.
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

// noteReasoning stores where the reasoning comes from that the client has got.
func (a *chat) noteReasoning(res *event.Result) {
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
