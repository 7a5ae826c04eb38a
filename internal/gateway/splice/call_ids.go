package splice

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"math"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/gateway/runlog"
	"github.com/lathe-run/lathe/internal/seal"
)

// If a run may call tools of this server, the calls that it returns to its client have ids of the gateway. One such id is enough to find
// the hidden turns before its call, whatever else of the conversation the client has changed or left out. The id that the model server gave
// the call stays in the log and in memory, and is the one that the model receives. The id of the gateway is:
//
//	"call_" RUN "_" BASE64URL(turn, 2 bytes; hash of the model server's id, 4 bytes; mark, 12 bytes)
//
// RUN is the id of the run without its prefix. The mark (package seal) is bound to the key, so that no client can refer to a turn of
// another key. It is not bound to the user: agents send a session in that field, and continue a conversation in another session. Relayed
// answers, and answers of runs without tools of this server, keep the ids of the model server.

const (
	callPrefix   = "call_"
	callIDTurn   = 2
	callIDHash   = 4
	callIDBytes  = callIDTurn + callIDHash + seal.MarkSize
	callIDTail   = callIDBytes / 3 * 4 // characters of base64
	maxCallRunID = maxCallID - len(callPrefix) - 1 - callIDTail
	maxCallID    = 64
)

// CallIDs creates and parses the ids of calls that a run returns to its client.
type CallIDs struct {
	ring      *seal.Ring
	principal string
	run       string // run whose calls get ids
}

// NewCallIDs returns the CallIDs of a run for a client of the principal. It returns nil if the id of the run is too long or the key cannot
// be read, which is logged; the calls then keep the ids of the model server.
func (ht *Turns) NewCallIDs(ctx context.Context, principal, run string) *CallIDs {
	if len(strings.TrimPrefix(run, runlog.RunPrefix)) > maxCallRunID {
		return nil
	}
	ring, err := ht.opts.Seals.Get(ctx)
	if err != nil {
		ht.opts.Log.Error("the key of call ids could not be read: the answer has those of the model server", "run_id", run, "code", lathe.CodeOf(err))
		return nil
	}
	return NewCallIDs(ring, principal, run)
}

// NewCallIDs returns the CallIDs of a run for a client of the principal.
func NewCallIDs(ring *seal.Ring, principal, run string) *CallIDs {
	return &CallIDs{ring, principal, run}
}

// A callRef is the content of a call id.
type callRef struct {
	run  string
	turn int
	hash [callIDHash]byte // hash of the model server's id
}

// head returns the bytes of the id before its mark.
func (r *callRef) head() []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(r.turn)), r.hash[:]...)
}

func hashOfCall(id string) [callIDHash]byte {
	sum := sha256.Sum256([]byte(id))
	return [callIDHash]byte(sum[:])
}

// binding returns the texts to which the mark of an id of the run is bound.
func (ids *CallIDs) binding(run string) []string {
	return []string{"call", ids.principal, run}
}

// makes reports whether the calls of a turn get ids of the gateway. Calls of turns beyond the largest number in an id keep the ids of the
// model server, and are found by the conversation before them.
func (ids *CallIDs) makes(turn int) bool { return ids != nil && turn <= math.MaxUint16 }

// Of returns the id of the gateway for a call of a turn that has the given id from the model server.
func (ids *CallIDs) Of(turn int, id string) string {
	if !ids.makes(turn) {
		return id
	}
	ref := callRef{ids.run, turn, hashOfCall(id)}
	tail := ref.head()
	tail = append(tail, ids.ring.Mark(tail, ids.binding(ref.run)...)...)
	return callPrefix + strings.TrimPrefix(ref.run, runlog.RunPrefix) + "_" + base64.RawURLEncoding.EncodeToString(tail)
}

// splitCallID splits an id that has the form of the gateway's ids into the run, without its prefix, and the base64 text after it.
func splitCallID(id string) (run, tail string, ok bool) {
	rest, ok := strings.CutPrefix(id, callPrefix)
	at := len(rest) - callIDTail - 1
	if !ok || len(id) > maxCallID || at <= 0 || rest[at] != '_' {
		return "", "", false
	}
	return rest[:at], rest[at+1:], true
}

// parse parses an id. ok is false if this server did not create it for this caller.
func (ids *CallIDs) parse(id string) (ref callRef, ok bool) {
	run, text, ok := splitCallID(id)
	tail, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if !ok || err != nil || len(tail) != callIDBytes { // the decoder ignores newlines, which shorten tail
		return ref, false
	}
	ref.run, ref.turn = runlog.RunPrefix+run, int(binary.BigEndian.Uint16(tail))
	copy(ref.hash[:], tail[callIDTurn:])
	head := tail[:callIDTurn+callIDHash]
	return ref, ids.ring.Marked(tail[len(head):], head, ids.binding(ref.run)...)
}

// key returns the key in memory of the turn.
func (r *callRef) key() Key {
	c := newHash(Owner{})
	c.Text(r.run)
	c.Bytes(r.head()[:callIDTurn])
	return Key(c.Sum())
}

// IsGatewayID reports whether an id has the form of ids that this server creates. It does not check the mark.
func IsGatewayID(id string) bool {
	_, _, ok := splitCallID(id)
	return ok
}
