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

// labelFingerprint is the label under which the log of a run has the request that it was begun by. It
// is not listed with those of the client.
const labelFingerprint = "lathe_request_sha256"

// onceWindow is how long an Idempotency-Key is good for: between one and two of them.
const onceWindow = 24 * time.Hour

// maxOnceKey bounds an Idempotency-Key, in bytes.
const maxOnceKey = 255

// A once is an Idempotency-Key. The id of the run that is begun with it is made of the day, the
// principal and the key: so the store itself keeps a second run from being begun, in whichever
// process, and nothing else has to be kept.
type once struct {
	name        string // of the lock
	hash        [sha256.Size]byte
	fingerprint string
}

// onceOf reads the Idempotency-Key of a request; nil where it has none.
func onceOf(r *http.Request, c *caller, body []byte) (*once, *problem) {
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
	o := &once{fingerprint: hex.EncodeToString(sum[:])}
	o.hash = sha256.Sum256([]byte(strconv.Itoa(len(c.key.Name)) + ":" + c.key.Name + key))
	o.name = "once " + string(o.hash[:])
	return o, nil
}

// timeOfID is the length of the prefix and the time of an id.
const timeOfID = len(runlog.RunPrefix) + 10

// crockford is the alphabet of ids.
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// id is that of a run which is begun at that time: the form of all ids, with the beginning of the
// window for the time, and the key for what is random.
func (o *once) id(at time.Time) string {
	return newRunID(uint64(max(at.Truncate(onceWindow).UnixMilli(), 0)), &o.hash)
}

// newRunID returns the id of a run in the form of all ids: a time in milliseconds, and 80 bits of a hash in place of what is random.
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

// onceSkew is how far the clocks of processes that share a store may be apart.
const onceSkew = time.Hour

// earlier returns the run that was begun with the key; "" where there is none. One that the store has removed
// since is a problem: begun again, its tools would be called twice.
func (h *runsHandler) earlier(ctx context.Context, c *caller, o *once) (string, *problem) {
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
			if !ok || !c.owns(d) || d.Labels[labelFingerprint] != o.fingerprint {
				return "", problems.New(http.StatusUnprocessableEntity, "idempotency_key_reused", "A run was begun with this Idempotency-Key by another request. Send a new key with another body.")
			}
			return id, nil
		}
	}
	return "", nil
}
