package provider

import (
	"bytes"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
)

// shortenIDs encodes the request again with short ids of calls and returns true, if the server refused the ids in the request. All later
// requests to the server then have short ids. The bytes of a relayed request are not changed.
func (v *modelCall) shortenIDs(req *lathe.Request, a *attempt, err *lathe.Error) bool {
	if v.short || a.visible || v.raw || !refusesIDs(err) {
		return false
	}
	v.chat.shortIDs.Store(true)
	return v.encodeRequest(req) == nil && v.short
}

// maxRefused limits the number of features that are stored as refused by a server.
const maxRefused = 8

// retryWithoutFeature encodes the request again without a feature and returns true, if the server refused that feature and the request has
// it.
func (v *modelCall) retryWithoutFeature(req *lathe.Request, a *attempt) bool {
	if a.visible || a.refusal == nil {
		return false
	}
	feature := refusedFeature(v.chat.wire, a.refusal)
	if feature == "" || v.encode.Omits(feature) || len(v.encode.Without) >= maxRefused {
		return false
	}
	before := v.request
	v.without = append(v.without, feature)
	if v.encodeRequest(req) != nil {
		return false
	}
	return !bytes.Equal(v.request.whole(), before.whole())
}

// recordRefusedFeatures makes all later requests omit the features that the server refused. It is called once the server has answered a
// request without them: an error alone does not prove a refusal, because it may quote words of the request.
func (v *modelCall) recordRefusedFeatures() {
	for known := v.chat.refused.Load(); len(v.without) > 0; known = v.chat.refused.Load() {
		var now []string
		if known != nil {
			now = slices.Clone(*known)
		}
		for _, feature := range v.without {
			if feature == wire.FeatureBound { // a property of this conversation only
				continue
			}
			if !slices.Contains(now, feature) && len(now) < maxRefused {
				now = append(now, feature)
			}
		}
		if v.chat.refused.CompareAndSwap(known, &now) {
			return
		}
	}
}
