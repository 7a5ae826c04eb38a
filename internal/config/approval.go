package config

import "time"

// Approval configures how clients and approvers are informed that a run waits for an approval.
type Approval struct {
	// How long the answer of a chat completion is held open while its run waits for an approval, at most 5m where it
	// is not streamed; then the run goes on in the same answer. `0s`: the answer ends with `approval.waiting_text`
	// at once.
	Hold time.Duration `key:"hold" default:"0s" range:"0s.." also:"wait hold_open"`
	// Sentence at the end of a chat completion whose run waits for an approval. `{run}` stands for the run and must
	// be there once, `{tool}` for the tools, `{command}` for the command that answers. It is taken out of what the
	// model sees.
	WaitingText string "key:\"waiting_text\" default:\"This waits for an approval: {tool} has not been called (run {run}). Approve or deny it with `{command}` or in the console, then go on with this conversation.\" is:\"sentence\" also:\"pending_text\""
	// Endpoint to which the gateway sends a signed request for each call that waits; see docs/policy.md. Changes take effect after a restart.
	Webhook Webhook `key:"webhook"`
}

// A Webhook is an HTTP endpoint to which signed notifications are sent.
type Webhook struct {
	// Address of the endpoint. Default: none. An address that is not public must be in `tools.egress.private`.
	URL Ref `key:"url" is:"url"`
	// Secret of the signatures, as a reference to `whsec_` and 24 to 64 bytes in base64.
	Secret Ref `key:"secret" is:"key" also:"key signing_secret"`
	// Address of the console for the link of a notice, such as `https://lathe.example.com`. Default: no link.
	Page string `key:"page" is:"word" also:"console link"`
}
