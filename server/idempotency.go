package server

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	problems "github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/gateway/runlog"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/store"
)

// labelFingerprint is the label of a run that contains the hash of the request that began it. Clients do not see it among
// the labels of the run.
const labelFingerprint = "lathe_request_sha256"

// onceWindow is the period of Idempotency-Keys: a key is valid for one to two periods.
const onceWindow = 24 * time.Hour

// maxOnceKey is the maximum length of an Idempotency-Key in bytes.
const maxOnceKey = 255

// An idempotencyKey is an Idempotency-Key. The id of the run that is begun with it is derived from the period, the principal and the
// key. So the store itself, which accepts one run for each id, prevents a second run in any process, and nothing else needs
// to be stored.
type idempotencyKey struct {
	name        string // the name of the lock
	hash        [sha256.Size]byte
	fingerprint string
}

// idempotencyKeyOf reads the Idempotency-Key of a request; nil if the request has none. body is the text that must be equal if the
// key is sent again.
func idempotencyKeyOf(r *http.Request, c *caller, body []byte) (*idempotencyKey, *problem) {
	given := r.Header.Values("Idempotency-Key")
	if len(given) == 0 {
		return nil, nil
	}
	key := strings.Trim(strings.TrimSpace(given[0]), `"`)
	bad := strings.IndexFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) >= 0
	if len(given) > 1 || key == "" || len(key) > maxOnceKey || bad {
		return nil, badRequest("Idempotency-Key", "An Idempotency-Key is 1 to %d characters of ASCII, and there is one.", maxOnceKey)
	}
	canonical, err := rawjson.AppendCanonical(nil, body)
	if err != nil {
		canonical = body
	}
	sum := sha256.Sum256(canonical)
	o := &idempotencyKey{fingerprint: hex.EncodeToString(sum[:])}
	o.hash = sha256.Sum256([]byte(strconv.Itoa(len(c.key.Name)) + ":" + c.key.Name + key))
	o.name = "once " + string(o.hash[:])
	return o, nil
}

// timeOfID is the length of the part of a run id that consists of the prefix and the time.
const timeOfID = len(runlog.RunPrefix) + 10

// crockford is the base 32 alphabet of run ids.
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// id returns the id of a run that is begun with the key at the given time. It has the form of other run ids: the start of
// the period takes the place of the time, and the hash of the key that of the random bits.
func (o *idempotencyKey) id(at time.Time) string {
	return newRunID(uint64(max(at.Truncate(onceWindow).UnixMilli(), 0)), &o.hash)
}

// newRunID returns a run id, such as run_01HF7YAT003QVGFYEH6J1BGE1G, with a time in milliseconds, and 80 bits of a hash instead
// of random bits. The 26 digits of base 32 are 128 bits: 48 bits of time and 16 of the hash in hi, 64 of the hash in lo. A digit
// has the 5 bits from the bit shift on.
func newRunID(ms uint64, hash *[sha256.Size]byte) string {
	hi, lo := ms<<16|uint64(binary.BigEndian.Uint16(hash[:2])), binary.BigEndian.Uint64(hash[2:10])
	id := []byte(runlog.RunPrefix)
	for shift := 125; shift >= 0; shift -= 5 {
		n := hi >> max(shift-64, 0)
		if shift < 64 {
			n = lo>>shift | hi<<(64-shift)
		}
		id = append(id, crockford[n&31])
	}
	return string(id)
}

// onceSkew is the maximum difference between the clocks of processes that share a store.
const onceSkew = time.Hour

// earlier returns the id of the run that was begun with the key; "" if none exists. If the store has deleted that run, or
// another request began it, earlier returns a problem: a new run would call the tools twice.
func (h *runsHandler) earlier(ctx context.Context, c *caller, o *idempotencyKey) (string, *problem) {
	now := h.opts.Now()
	ids := []string{o.id(now.Add(-onceWindow)), o.id(now), o.id(now.Add(onceSkew))}
	for _, id := range slices.Compact(ids) {
		for e, err := range h.opts.Index.Read(ctx, id, 0) {
			var gone *store.GoneError
			if lathe.CodeOf(err) == lathe.CodeNotFound && !errors.As(err, &gone) {
				break
			}
			if err != nil {
				return "", h.runFailed(c, err)
			}
			d, ok := e.Data.(*event.RunStarted)
			if !ok || !c.owns(d.Principal) || d.Labels[labelFingerprint] != o.fingerprint {
				return "", problems.New(http.StatusUnprocessableEntity, "idempotency_key_reused", "A run was begun with this Idempotency-Key by another request. Send a new key with another body.")
			}
			return id, nil
		}
	}
	return "", nil
}
