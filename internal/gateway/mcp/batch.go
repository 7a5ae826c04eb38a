package mcp

import (
	"bytes"
	"context"
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/lathe-run/lathe/internal/jsonrpc2"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// A batch is a JSON array of JSON-RPC messages. The server checks every message of it before the SDK receives any.

// batchEra is the only protocol version that defines batches.
const batchEra = "2025-03-26"

// maxBatch bounds the messages of a batch.
const maxBatch = 64

// batchLimits are messageLimits for a batch, in which messages are nested one level deeper.
var batchLimits = rawjson.Limits{MaxDepth: messageLimits.MaxDepth + 1, MaxKeys: messageLimits.MaxKeys}

// inspectBatch checks a batch that a client sent under a protocol version, and returns its messages in their order. If one of them is not
// valid, none is returned: refused is then the response, with an error for every request.
func inspectBatch(b []byte, protocol string) (messages [][]byte, refused []byte) {
	if protocol != batchEra {
		return nil, invalid("", "batches belong to protocol version "+batchEra+": send one message at a time").append(nil)
	}
	messages, err := jsonrpc2.Batch(b, batchLimits, maxBatch)
	switch {
	case errors.Is(err, jsonrpc2.ErrLongBatch), errors.Is(err, jsonrpc2.ErrEmptyBatch):
		return nil, invalid("", err.Error()).append(nil)
	case err != nil:
		return nil, unreadable(b, err).append(nil)
	}
	all := make([]batched, len(messages))
	seen := map[string]bool{}
	for i, text := range messages {
		all[i] = inspectBatched(text, seen)
	}
	if slices.ContainsFunc(all, func(m batched) bool { return m.fault != nil }) {
		return nil, refuseBatch(all)
	}
	return messages, nil
}

// A batched is a message of a batch.
type batched struct {
	id    string   // of a request, as JSON text; "": a response or a notification
	fault *refusal // nil: the message is valid
}

// inspectBatched checks one message. seen are the ids of the messages before it, to which it adds its own.
func inspectBatched(text []byte, seen map[string]bool) batched {
	m, fault := inspect(text)
	if fault == nil && m.method == "" {
		return batched{} // a response: its id is that of a request of the server
	}
	id := spelled(m.id)
	isSecond := m.id != "" && seen[id]
	seen[id] = true
	if fault == nil && m.method == "initialize" {
		fault = invalid(m.id, "initialize stands alone, not in a batch")
	}
	if fault == nil && isSecond {
		fault = invalid(m.id, "two requests of the batch have one id")
	}
	return batched{m.id, fault}
}

// refuseBatch returns the response to a batch of which at least one message is not valid.
func refuseBatch(all []batched) []byte {
	var responses [][]byte
	for _, m := range all {
		if m.fault == nil && m.id != "" {
			m.fault = invalid(m.id, "nothing of the batch was done: another message of it cannot be used")
		}
		if m.fault != nil {
			responses = append(responses, m.fault.append(nil))
		}
	}
	return array(responses)
}

// array returns a JSON array of the elements.
func array(elements [][]byte) []byte {
	return slices.Concat([]byte{'['}, bytes.Join(elements, []byte{','}), []byte{']'})
}

// spelled returns a JSON id in one spelling, without unnecessary escapes, for comparison.
func spelled(id string) string {
	if b, err := rawjson.AppendUnquote([]byte{'"'}, []byte(id)); err == nil {
		return string(b)
	}
	return id
}

// postBatch serves a batch over HTTP: it refuses the batch or passes it to the session handler. charge is [HTTPOptions].Charge.
func (s *Server) postBatch(w *patientWriter, r *http.Request, t *tenant, body []byte, charge func(context.Context, int) (time.Duration, bool)) {
	id := r.Header.Get(headerSession)
	session := t.sessionNamed(id)
	if id != "" && session == nil {
		passOn(t.stateful, w, r, body) // it answers that there is no such session
		return
	}
	messages, refused := inspectBatch(body, batchProtocol(session, r.Header.Get(headerVersion)))
	if refused != nil {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write(refused) // the client may have left
		return
	}
	messages = slices.DeleteFunc(messages, isIgnored)
	if len(messages) == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	further := len(messages) - 1 // the request itself was charged
	if further > 0 && charge != nil {
		if wait, ok := charge(r.Context(), further); !ok {
			w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
			answer(w, http.StatusTooManyRequests, &refusal{code: codeBusy, text: "the key may not make so many requests: each message of a batch counts"})
			return
		}
	}
	t.sync() // the session handler uses the tools that are registered with the SDK
	passOn(t.stateful, w, r, array(messages))
}

// batchProtocol returns the protocol version of a batch: that of the session, which may be nil, unless the header names another one. A header
// alone does not permit batches: without a session, batchEra in the header leaves the version unknown.
func batchProtocol(session *clientSession, header string) string {
	switch {
	case header != "" && header != batchEra:
		return header
	case session != nil:
		return session.protocol()
	}
	return ""
}

// isIgnored reports whether a message that passed inspect is a notification that the server ignores.
func isIgnored(b []byte) bool {
	m, _ := inspect(b)
	return m.ignored()
}

// A bundle collects the responses to one batch over standard streams, which are sent together.
type bundle struct {
	open int      // number of responses that are missing
	out  [][]byte // responses so far
}

// put adds a response. It returns the encoded bundle if the response is the last one, else nil.
func (b *bundle) put(answer []byte) []byte {
	b.out = append(b.out, answer)
	if b.open--; b.open > 0 {
		return nil
	}
	return array(b.out)
}
