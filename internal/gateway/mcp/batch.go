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
	var wrong []*refusal // refusal of each message; nil: the message is valid
	var ids []string
	seen := map[string]bool{}
	bad := false
	for _, one := range messages {
		m, no := inspect(one)
		switch {
		case no != nil:
		case m.method == "initialize":
			no = invalid(m.id, "initialize stands alone, not in a batch")
		case m.id != "" && m.method != "" && seen[spelled(m.id)]:
			no = invalid(m.id, "two requests of the batch have one id")
		case m.method == "": // a response has the id of a request of the server
			m.id = ""
		}
		seen[spelled(m.id)] = true
		bad = bad || no != nil
		wrong, ids = append(wrong, no), append(ids, m.id)
	}
	if !bad {
		return messages, nil
	}
	refused = []byte{'['}
	for i, no := range wrong {
		if no == nil && ids[i] != "" {
			no = invalid(ids[i], "nothing of the batch was done: another message of it cannot be used")
		}
		if no == nil {
			continue
		}
		if len(refused) > 1 {
			refused = append(refused, ',')
		}
		refused = no.append(refused)
	}
	return nil, append(refused, ']')
}

// spelled returns a JSON id in one spelling, without unnecessary escapes, for comparison.
func spelled(id string) string {
	if b, err := rawjson.AppendUnquote([]byte{'"'}, []byte(id)); err == nil {
		return string(b)
	}
	return id
}

// postBatch serves a batch over HTTP.
func (s *Server) postBatch(w *patientWriter, r *http.Request, t *tenant, body []byte, charge func(context.Context, int) (time.Duration, bool)) {
	v, known := t.sessionNamed(r.Header.Get(headerSession))
	protocol := ""
	if known {
		protocol = v.protocol()
	}
	version := r.Header.Get(headerVersion)
	if version != "" && version != batchEra {
		protocol = version
	}
	if known || r.Header.Get(headerSession) == "" { // else the session handler answers that there is no such session
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
		body = append(append([]byte{'['}, bytes.Join(messages, []byte{','})...), ']')
		t.sync()
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
	open int // number of responses that are missing
	out  [][]byte
}

// put adds a response. It returns the encoded bundle if the response is the last one, else nil.
func (b *bundle) put(answer []byte) []byte {
	b.out = append(b.out, answer)
	if b.open--; b.open > 0 {
		return nil
	}
	return append(append([]byte{'['}, bytes.Join(b.out, []byte{','})...), ']')
}
