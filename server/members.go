package server

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/gateway/splice"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// Members of a request that Lathe does not read go to the model server if the wire's published schema has them, or if
// the model's entry lists them (Model.Pass: what its profile knows, and models.NAME.pass). All others are refused by
// name: with some a client would choose a model, server, tool or account that its key does not give it.

// members are those of a request that the server does not read.
type members struct {
	protocol *protocol
	req      *wire.ClientRequest
	ignored  []string       // they have no effect
	passed   []lathe.Member // the model server gets them
	dropped  []string       // places of what the wire of the model's server has no form for
	// callTurns are the turns of the messages of req whose calls have ids of this server, by index; nil: no part has such an id.
	callTurns map[int]*splice.CallTurn
}

// sort takes the members of the request that are not read: those that are passed on to m, and those that have no
// effect: also those that the wire of the model's server does not have. relayed says that the client gets the model server's
// own bytes.
func (ms *members) sort(m *Model, relayed bool) *problem {
	if p := ms.requireWholeConversation(relayed, m.Pass); p != nil {
		return p
	}
	same := m.Loop.Wire() == ms.protocol.Wire()
	for _, member := range ms.req.Unknown {
		name := member.Name
		listed := slices.Contains(m.Pass, name)
		switch {
		case name == "lathe":
		case ms.protocol.withheld.Has(name) && !listed, !relayed && slices.Contains(ms.protocol.shaping, name), !same && !listed && ms.likes(name) == "":
			ms.ignored = append(ms.ignored, name)
		case listed, ms.protocol.published.Has(name):
			ms.passed = append(ms.passed, member)
		default:
			return ms.unknown(m, name)
		}
	}
	if !relayed {
		ms.ignored = append(ms.ignored, ms.req.Dropped...)
	}
	return nil
}

// storedParts are members that refer to a part of the conversation or of the prompt that the vendor's server stores. If they were
// ignored, the model would answer without that part.
var storedParts = rawjson.NewNames("cachedContent", "cached_content", "conversation", "previous_interaction_id", "previous_response_id", "prompt", "thread")

// noThreads is the error detail after which the tool runners of Anthropic's libraries send the whole conversation, without a thread.
const noThreads = `{"error_code":"thread_unsupported_request","unsupported":["thread"]}`

// requireWholeConversation refuses a request with a member of storedParts that the codec did not read. pass are the members that the
// model's entry passes on: a relayed request may have those, since the model server that gets them stores the part.
func (ms *members) requireWholeConversation(relayed bool, pass []string) *problem {
	for _, m := range ms.req.Unknown {
		if !storedParts.Has(m.Name) || string(m.Value) == "null" || relayed && slices.Contains(pass, m.Name) {
			continue
		}
		p := badRequest(m.Name, "This server does not have the part of the conversation that %s stands for. Send the whole conversation in %s, without %s.",
			m.Name, ms.protocol.conversation, m.Name).WithCode("unsupported_parameter")
		if m.Name == "thread" && ms.protocol.Wire() == lathe.WireMessages {
			p.Details = noThreads
		}
		return p
	}
	return nil
}

// likes returns the member of the wire's schema that name equals under case folding without being it; "" if there is none.
func (ms *members) likes(name string) string {
	return cmp.Or(ms.protocol.withheld.Like(name), ms.protocol.published.Like(name))
}

// unknown is the answer to a request with a member that is not passed on.
func (ms *members) unknown(m *Model, name string) *problem {
	if like := ms.likes(name); like != "" {
		return badRequest(name, "The member %.64q differs from %s in the case or the form of its letters only. Send it as %s.", name, like, like).WithCode("ambiguous_member")
	}
	return badRequest(name, "The member %.64q is not known here and is not passed on to the model server.%s The operator can allow it with models.%.64s.pass in the configuration.",
		name, mean(name, m.Pass), cmp.Or(ms.req.Model, "NAME")).WithCode("unknown_parameter")
}

// asked returns the object `lathe` of the request; nil if it has none.
func (ms *members) asked() []byte {
	for _, m := range ms.req.Unknown {
		if m.Name == "lathe" {
			return m.Value
		}
	}
	return nil
}

// maxListed bounds the names of members that an answer lists.
const maxListed = 32

// passedNames are the members that were passed on, for the client to see.
func (ms *members) passedNames() []string {
	var names []string
	for _, m := range ms.passed[:min(len(ms.passed), maxListed)] {
		names = append(names, m.Name)
	}
	return names
}

func (a *chat) Header(h http.Header) {
	h.Set("X-Lathe-Run-Id", a.caller.runID)
	list := func(name string, members []string) {
		for _, m := range members[:min(len(members), maxListed)] {
			if isPath(m) {
				h.Add(name, m)
			}
		}
	}
	if a.lost > 0 {
		h.Set("X-Lathe-Lost-Joins", strconv.Itoa(a.lost))
	}
	list("X-Lathe-Passed", a.passedNames())
	list("X-Lathe-Ignored", a.ignored)
	list("X-Lathe-Dropped", a.dropped)
}

// isPath reports whether the path of a member can stand in a header: names, and indexes in brackets.
func isPath(s string) bool { return isToken(strings.NewReplacer("[", ".", "]", ".").Replace(s)) }

// isToken reports whether a name can stand in a header.
func isToken(s string) bool {
	return s != "" && len(s) <= 64 && strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' && r != '.'
	}) < 0
}
