package server

import (
	"cmp"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/gateway/splice"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// A member of a request that Lathe does not read is sent to the model server if the published schema of the wire has it, or
// if the entry of the model lists it (Model.Pass: members that its profile knows, and models.NAME.pass). All other members
// are refused by name: with some of them a client could choose a model, server, tool or account that its key does not
// allow.

// members records how the members of a request are handled that the server does not read.
type members struct {
	protocol *protocol
	req      *wire.ClientRequest
	ignored  []string       // names of the members that have no effect
	passed   []lathe.Member // the members that the model server gets
	dropped  []string       // paths of members that the wire of the model server cannot express
	// callTurns maps the index of a message of req to its turn, for messages whose calls have ids that this server made;
	// nil if none exist.
	callTurns map[int]*splice.CallTurn
}

// divide decides which of the members that the server does not read are sent to m, and which have no effect. It refuses
// unknown members. relayed is true if the client gets the model server's bytes unchanged.
func (ms *members) divide(m *Model, relayed bool) *problem {
	var stored []string // names of members that the model server resolves
	if relayed {
		stored = m.Pass
	}
	if p := ms.requireWholeConversation(stored); p != nil {
		return p
	}
	sameWire := m.Loop.Wire() == ms.protocol.Wire()
	for _, member := range ms.req.Unknown {
		name := member.Name
		switch {
		case name == "lathe": // see asked
		case !relayed && slices.Contains(ms.protocol.shaping, name):
			ms.ignored = append(ms.ignored, name)
		case slices.Contains(m.Pass, name):
			ms.passed = append(ms.passed, member)
		case ms.protocol.withheld.Has(name), !sameWire && ms.likes(name) == "": // the wire of the model server does not have it
			ms.ignored = append(ms.ignored, name)
		case ms.protocol.published.Has(name):
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

// storedParts are the members that refer to a part of the conversation or of the prompt which the vendor's server stores.
// If they were ignored, the model would answer without that part.
var storedParts = rawjson.NewNames("cachedContent", "cached_content", "conversation", "previous_interaction_id", "previous_response_id", "prompt", "thread")

// noThreads is the error detail that makes the tool runners of Anthropic's libraries send the whole conversation instead of
// a thread.
const noThreads = `{"error_code":"thread_unsupported_request","unsupported":["thread"]}`

// requireWholeConversation returns a problem if the request has a member of storedParts that the codec did not read. A
// request may have the members in stored: they are sent to the model server, which stores the part.
func (ms *members) requireWholeConversation(stored []string) *problem {
	for _, m := range ms.req.Unknown {
		if !storedParts.Has(m.Name) || string(m.Value) == "null" || slices.Contains(stored, m.Name) {
			continue
		}
		p := badRequest(m.Name, "This gateway does not have the part of the conversation that %s stands for. Send the whole conversation in %s, without %s.",
			m.Name, ms.protocol.conversation, m.Name).WithCode("unsupported_parameter")
		if m.Name == "thread" && ms.protocol.Wire() == lathe.WireMessages {
			p.Details = noThreads
		}
		return p
	}
	return nil
}

// likes returns the member of the wire's schema that differs from name only in case; "" if none exists.
func (ms *members) likes(name string) string {
	return cmp.Or(ms.protocol.withheld.Like(name), ms.protocol.published.Like(name))
}

// unknown returns the problem of a request with a member that is not passed on.
func (ms *members) unknown(m *Model, name string) *problem {
	if like := ms.likes(name); like != "" {
		return badRequest(name, "The member %.64q differs from %s in the case or the form of its letters only. Send it as %s.", name, like, like).WithCode("ambiguous_member")
	}
	return badRequest(name, "The member %.64q is not known here and is not passed on to the model server.%s The operator can allow it with models.%.64s.pass in the configuration.",
		name, mean(name, m.Pass), cmp.Or(ms.req.Model, "NAME")).WithCode("unknown_parameter")
}

func (ms *members) asked() []byte {
	for _, m := range ms.req.Unknown {
		if m.Name == "lathe" {
			return m.Value
		}
	}
	return nil
}
