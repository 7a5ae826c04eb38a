package mcp

import (
	"bytes"
	"context"
	"errors"
	"io"
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
	reasons := make([]*refusal, len(messages)) // why a message is refused; nil: it is valid
	ids := make([]string, len(messages))       // ids of requests; "": a response or a notification
	seen := map[string]bool{}
	valid := true
	for i, text := range messages {
		m, reason := inspect(text)
		if reason == nil && m.method == "" {
			continue // a response: its id is that of a request of the server
		}
		if reason == nil && m.method == "initialize" {
			reason = invalid(m.id, "initialize stands alone, not in a batch")
		}
		if reason == nil && m.id != "" && seen[spelled(m.id)] {
			reason = invalid(m.id, "two requests of the batch have one id")
		}
		seen[spelled(m.id)] = true
		valid = valid && reason == nil
		reasons[i], ids[i] = reason, m.id
	}
	if valid {
		return messages, nil
	}
	var responses [][]byte
	for i, reason := range reasons {
		if reason == nil && ids[i] != "" {
			reason = invalid(ids[i], "nothing of the batch was done: another message of it cannot be used")
		}
		if reason != nil {
			responses = append(responses, reason.append(nil))
		}
	}
	return nil, array(responses)
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

// postBatch serves a batch over HTTP: it refuses the batch or passes it to the session handler. charge counts further requests of the key;
// if they exceed its rate, it returns the time to wait and false. It is nil if requests are not limited.
func (s *Server) postBatch(w *patientWriter, r *http.Request, t *tenant, body []byte, charge func(context.Context, int) (time.Duration, bool)) {
	id, version := r.Header.Get(headerSession), r.Header.Get(headerVersion)
	session, known := t.sessionNamed(id)
	// The protocol version is that of the session, unless the header names another one. A header alone does not permit batches: without a
	// session, batchEra in the header leaves the version unknown.
	protocol := ""
	if known {
		protocol = session.protocol()
	}
	if version != "" && version != batchEra {
		protocol = version
	}
	if known || id == "" { // else the session handler answers that there is no such session
		messages, refused := inspectBatch(body, protocol)
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
		body = array(messages) // without the notifications that the server ignores
		t.sync()               // the session handler uses the tools that are registered with the SDK
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	t.stateful.ServeHTTP(w, r)
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
