package gateway

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire/openai"
)

// Members of a request that Lathe does not read go to the model server if OpenAI's published schema has them, or if
// the model's entry lists them (Model.Pass: what its profile knows, and models.NAME.pass). All others are refused by
// name: with some a client would choose a model, server, tool or account that its key does not give it.

// held are members of the published schema that are not passed on, and have no effect, unless the model's entry
// lists them: they have something stored, or have the model server call a tool of its own.
var held = []string{"store", "metadata", "web_search_options"}

// shaping are members that only a client who gets the model server's own bytes sees anything of.
var shaping = []string{"audio", "modalities", "logprobs", "top_logprobs"}

var heldNames = rawjson.NewNames(held...)

// sort takes the members of the request that are not read: those that are passed on to m, and those that have no
// effect. relayed says that the client gets the model server's own bytes.
func (a *chat) sort(m *Model, relayed bool) *problem {
	for _, member := range a.req.Unknown {
		name := member.Name
		listed := slices.Contains(m.Pass, name)
		switch {
		case name == "lathe":
		case heldNames.Has(name) && !listed, !relayed && slices.Contains(shaping, name):
			a.ignored = append(a.ignored, name)
		case listed, openai.Published(name):
			a.passed = append(a.passed, member)
		default:
			return a.unknown(m, name)
		}
	}
	if !relayed {
		a.ignored = append(a.ignored, a.req.Dropped...)
	}
	return nil
}

// unknown is the answer to a request with a member that is not passed on.
func (a *chat) unknown(m *Model, name string) *problem {
	p := &problem{Status: http.StatusBadRequest, Code: "unknown_parameter", Param: name}
	like := heldNames.Like(name)
	if like == "" {
		like = openai.LikePublished(name)
	}
	if like != "" {
		p.Code = "ambiguous_member"
		p.Message = fmt.Sprintf("The member %.64q differs from %s in the case or the form of its letters only. Send it as %s.", name, like, like)
		return p
	}
	entry := a.req.Model
	if entry == "" {
		entry = "NAME"
	}
	p.Message = fmt.Sprintf("The member %.64q is not known here and is not passed on to the model server.%s The operator can allow it with models.%.64s.pass in the configuration.",
		name, mean(name, m.Pass), entry)
	return p
}

// asked returns the object `lathe` of the request; nil if it has none.
func (a *chat) asked() []byte {
	for _, m := range a.req.Unknown {
		if m.Name == "lathe" {
			return m.Value
		}
	}
	return nil
}

// maxListed bounds the names of members that an answer lists.
const maxListed = 32

// passedNames are the members that were passed on, for the client to see.
func (a *chat) passedNames() []string {
	var names []string
	for _, m := range a.passed[:min(len(a.passed), maxListed)] {
		names = append(names, m.Name)
	}
	return names
}

func (a *chat) header(h http.Header) {
	h.Set("X-Lathe-Run-Id", a.caller.runID)
	list := func(name string, members []string) {
		for _, m := range members {
			if isToken(m) {
				h.Add(name, m)
			}
		}
	}
	if a.lost > 0 {
		h.Set("X-Lathe-Lost-Joins", strconv.Itoa(a.lost))
	}
	list("X-Lathe-Passed", a.passedNames())
	list("X-Lathe-Ignored", a.ignored[:min(len(a.ignored), maxListed)])
}

// isToken reports whether a name can stand in a header.
func isToken(s string) bool {
	return s != "" && len(s) <= 64 && strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' && r != '.'
	}) < 0
}
