package provider

import (
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/destination"
	"github.com/lathe-run/lathe/internal/wire"
)

// takes returns the row of what the server accepts in requests for a model. refused are the features that it has refused.
func takes(c *Chat, model string, refused []string) destination.Row {
	row := c.encode.Takes
	if model != c.model {
		row = destination.For(c.wire.Wire(), c.opts.Server.Kind, c.base.Host, model).With(&c.accepts)
	}
	if slices.Contains(refused, wire.FeatureSystem) {
		row = row.With(&destination.Row{System: destination.Leading})
	}
	return withRefused(row, refused)
}

// roles returns the messages with the roles under which they are sent. The content that a message may have depends on its role.
func roles(c *Chat, takes *destination.Row, messages []lathe.Message) []lathe.Message {
	v := takes.NewConversation()
	out, _ := v.Roles(messages, nil, c.fit.Sends)
	return out
}

// refusals map words in error messages of servers to the feature that the server refuses and the row that omits it. The errors about
// roles come from chat templates (of Mistral, Llama 2, Gemma and Qwen) and from servers with the same rules.
var refusals = []struct {
	feature string
	words   []string
	takes   *destination.Row
}{
	{"developer", []string{"unknown variant `developer`"}, &destination.NoDeveloper},
	{"several system messages", []string{"system message must be at the beginning", "no user query found"}, &destination.OneSystem},
	{"roles", []string{"roles must alternate", "only user and assistant roles", "unexpected message role", "unexpected role"}, &destination.StrictRoles},
	{"effort", []string{"reasoning_effort` is not supported", "reasoning_effort' is not supported", "supplied: reasoning_effort", "'reasoning_effort' is unsupported"}, &destination.NoThinking},
}

// withRefused returns row, where each refused feature overrides the columns that its row sets.
func withRefused(row destination.Row, refused []string) destination.Row {
	for _, r := range refusals {
		if slices.Contains(refused, r.feature) {
			row = row.With(r.takes)
		}
	}
	return row
}

// refusedFeature returns the feature that the server refused with this error; "" if the error is another one. Servers send the errors of
// chat templates with status 400 or 500.
func refusedFeature(codec wire.Upstream, e *wire.APIError) string {
	if feature := codec.Refused(e); feature != "" {
		return feature
	}
	if e.Status < 400 {
		return ""
	}
	message := strings.ToLower(e.Message)
	for _, r := range refusals {
		if containsAny(message, r.words) {
			return r.feature
		}
	}
	return ""
}

// refusesRoles reports whether the server certainly refuses the roles in the messages of a relayed request: it has refused such messages
// before, or certain, the row of the options, excludes them. Such a request is encoded instead, unless the internal form cannot express
// it.
func refusesRoles(certain destination.Row, r *lathe.Request, opts *wire.EncodeOptions) bool {
	certain = withRefused(certain, opts.Without)
	roles := destination.Row{System: certain.System, Developer: certain.Developer, Turns: certain.Turns}
	if r.Relay.Opaque || roles == (destination.Row{}) {
		return false
	}
	messages := roles.NewConversation()
	out, _ := messages.Roles(r.Messages, nil, nil)
	out, _ = messages.Join(out, nil)
	return len(out) > 0 && &out[0] != &r.Messages[0]
}
