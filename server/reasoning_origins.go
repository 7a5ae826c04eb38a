package server

import (
	"crypto/sha256"
	"slices"
	"sync"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// Model servers refuse reasoning that they have not written (Anthropic, Gemini), and reasoning in another member than their
// own (Groq and Cerebras refuse reasoning_content). A client's message names neither: it has the text alone, in the
// member in which this server sends it.

// maxOrigins bounds the origins that are kept, about 200 bytes each.
const maxOrigins = 10_000

// origins says of reasoning that clients were sent from which entry of the models it came, and in which member. It holds hashes,
// the last maxOrigins of them, in this process. Reasoning that it does not know goes to the entry of the request, in
// the member it came in.
type origins struct {
	mu   sync.Mutex
	of   map[[sha256.Size]byte]origin
	ring [][sha256.Size]byte // in the order in which they came
	next int
}

type origin struct{ entry, field string }

// hashReasoning returns the hash of the reasoning of a message, and the member that it came in; ok is false if it has none.
func hashReasoning(principal string, m *lathe.Message) (sum [sha256.Size]byte, field string, ok bool) {
	if !slices.ContainsFunc(m.Parts, func(p lathe.Part) bool { _, is := p.(lathe.Reasoning); return is }) {
		return sum, "", false // most messages have none
	}
	h := sha256.New()
	h.Write([]byte(principal))
	h.Write([]byte{0})
	for _, p := range m.Parts {
		if r, is := p.(lathe.Reasoning); is && r.Text != "" {
			h.Write([]byte(r.Text))
			if field == "" {
				field = r.Field
			}
			ok = true
		}
	}
	h.Sum(sum[:0])
	return sum, field, ok
}

// note keeps where the reasoning of a message that the principal was sent comes from.
func (o *origins) note(principal, entry, field string, m *lathe.Message) {
	sum, _, ok := hashReasoning(principal, m)
	if !ok {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of == nil {
		o.of = map[[sha256.Size]byte]origin{}
	}
	if _, known := o.of[sum]; !known {
		if len(o.ring) < maxOrigins {
			o.ring = append(o.ring, sum)
		} else {
			delete(o.of, o.ring[o.next])
			o.ring[o.next] = sum
			o.next = (o.next + 1) % maxOrigins
		}
	}
	o.of[sum] = origin{entry, field}
}

// apply returns the messages as the entry may get them: without reasoning that another entry wrote, and with its own in the
// member that it used. changed is false if they are the messages given.
func (o *origins) apply(principal, entry string, messages []lathe.Message) (out []lathe.Message, changed bool) {
	for i := range messages {
		sum, field, ok := hashReasoning(principal, &messages[i])
		if !ok {
			continue
		}
		o.mu.Lock()
		from, known := o.of[sum]
		o.mu.Unlock()
		if !known || from.entry == entry && (from.field == "" || from.field == field) {
			continue
		}
		if !changed {
			messages, changed = slices.Clone(messages), true
		}
		messages[i] = from.moved(&messages[i], entry)
	}
	return messages, changed
}

// moved returns m with its reasoning in the member that the entry uses, or without it for another entry.
func (o origin) moved(m *lathe.Message, entry string) lathe.Message {
	out := *m
	out.Parts = make([]lathe.Part, 0, len(m.Parts))
	for _, p := range m.Parts {
		r, is := p.(lathe.Reasoning)
		if is && o.entry != entry {
			continue
		}
		if is {
			r.Field = o.field
			p = r
		}
		out.Parts = append(out.Parts, p)
	}
	if o.entry != entry {
		out.Extra = slices.DeleteFunc(slices.Clone(m.Extra), func(x lathe.Member) bool { return x.Name == "reasoning_details" })
	}
	return out
}

// noteReasoning keeps where the reasoning comes from that the client has got.
func (a *chat) noteReasoning(res *event.Result) {
	var all lathe.Message
	field := ""
	for _, m := range res.History[min(a.base, len(res.History)):] {
		for _, p := range m.Parts {
			if r, ok := p.(lathe.Reasoning); ok && m.Role == lathe.RoleAssistant {
				all.Parts = append(all.Parts, r)
				if field == "" {
					field = r.Field
				}
			}
		}
	}
	a.handler.origins.note(a.caller.key.Name, a.req.Model, field, &all)
}
