package server

import (
	"context"
	"errors"
	"sync"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/seal"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/store"
)

// sealKeyName is the name of the key in the store.
const sealKeyName = "seal_key"

// sealKeys loads the keys for carriers at their first use: from the configuration, from the store, or, without a store, a
// random key of this process.
type sealKeys struct {
	own, previous secret.Secret
	keeper        store.SecretKeeper // nil: the store keeps no secrets

	mu   sync.Mutex
	ring *seal.Ring
}

func newSealKeys(o *Options) (*sealKeys, error) {
	k := &sealKeys{own: o.SealKey, previous: o.PreviousSealKey}
	k.keeper, _ = o.Index.(store.SecretKeeper)
	if k.own.IsZero() && !k.previous.IsZero() {
		return nil, errors.New("serve.previous_seal_key goes with serve.seal_key")
	}
	if !k.own.IsZero() {
		if _, err := k.get(context.Background()); err != nil {
			return nil, errors.New("serve.seal_key and serve.previous_seal_key need at least 32 characters")
		}
	}
	return k, nil
}

// get returns the key ring. The error is that of the store, and the next call tries again.
func (k *sealKeys) get(ctx context.Context) (*seal.Ring, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ring != nil {
		return k.ring, nil
	}
	keys := []secret.Secret{k.own}
	if k.own.IsZero() {
		made := seal.NewKey()
		if k.keeper != nil {
			kept, err := k.keeper.SharedSecret(ctx, sealKeyName, made)
			if err != nil {
				return nil, err
			}
			made = kept
		}
		keys[0] = secret.New(string(made))
	}
	if !k.previous.IsZero() {
		keys = append(keys, k.previous)
	}
	ring, err := seal.NewRing(keys...)
	if err != nil {
		return nil, &lathe.Error{Code: lathe.CodeInvalidConfig, Op: "server: make the keys of seals", Err: err}
	}
	k.ring = ring
	return ring, nil
}
