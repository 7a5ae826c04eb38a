package provider

import (
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/destination"
	"github.com/lathe-run/lathe/internal/wire"
)

// takes returns what the server takes in requests for a model. refused are the features that it has refused.
func takes(c *Chat, model string, refused []string) destination.Row {
	row := c.encode.Takes
	if model != c.model {
		row = destination.For(c.wire.Wire(), c.opts.Server, c.base.Host, model).With(&c.accepts)
	}
	if slices.Contains(refused, wire.FeatureSystem) {
		row = row.With(&destination.Row{System: destination.Leading})
	}
	if slices.Contains(refused, featureRoles) {
		row = row.With(&destination.StrictRoles)
	}
	return row
}

// featureRoles is the feature of messages in any order of roles, on every wire.
const featureRoles = "roles"

// roleErrors are words of errors about the roles of messages: of chat templates (Mistral's, Llama 2's, Gemma's, Qwen's) and of servers
// with their rules.
var roleErrors = []string{"roles must alternate", "only user and assistant roles", "system message must be at the beginning", "unexpected message role",
	"unexpected role", "unknown variant `developer`", "no user query found"}

// refusedFeature returns the feature that the server refused with an error, "" if none. Servers send the errors of chat templates with
// status 400 or 500.
func refusedFeature(codec wire.Upstream, e *wire.APIError) string {
	if feature := codec.Refused(e); feature != "" {
		return feature
	}
	message := strings.ToLower(e.Message)
	if e.Status >= 400 && slices.ContainsFunc(roleErrors, func(words string) bool { return strings.Contains(message, words) }) {
		return featureRoles
	}
	return ""
}

// adapt changes what the server does not take in a whole request.
func adapt(c *Chat, r *lathe.Request, takes *destination.Row) {
	v := conversation{c: c}
	v.form.fit = takes.NewConversation()
	takes.Fit(c.wire.Wire(), r)
	r.Messages = v.adapt(r.Messages, 0)
}

// refusesRoles reports whether it is certain that the server refuses the roles of the messages of a request that is relayed: it has
// refused such messages before, or certain, the rules of the options, say so. Such a request is encoded instead, if the internal form can express it.
func refusesRoles(certain destination.Row, r *lathe.Request, opts *wire.EncodeOptions) bool {
	if slices.Contains(opts.Without, featureRoles) {
		certain = destination.StrictRoles
	}
	roles := destination.Row{System: certain.System, Developer: certain.Developer, Turns: certain.Turns}
	if r.Relay.Opaque || roles == (destination.Row{}) {
		return false
	}
	messages := roles.NewConversation()
	out, _ := messages.Apply(r.Messages, 0, nil)
	return len(out) > 0 && &out[0] != &r.Messages[0]
}
