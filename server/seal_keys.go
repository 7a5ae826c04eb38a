package server

import (
	"context"
	"errors"
	"sync"
	"time"

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

	mu      sync.Mutex
	ring    *seal.Ring
	loading *sealLoad // nil: no load is under way
}

// A sealLoad is one load of the keys. All callers wait for it that come while it is under way.
type sealLoad struct {
	over chan struct{}
	ring *seal.Ring // with err, good once over is closed
	err  error
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

// get returns the key ring. The error is that of the store, and the next call tries again, or that of ctx. A load continues when the
// request that began it ends.
func (k *sealKeys) get(ctx context.Context) (*seal.Ring, error) {
	k.mu.Lock()
	if k.ring != nil {
		defer k.mu.Unlock()
		return k.ring, nil
	}
	l := k.loading
	if l == nil {
		l = &sealLoad{over: make(chan struct{})}
		k.loading = l
		go func() {
			defer close(l.over)
			l.ring, l.err = k.load(context.WithoutCancel(ctx))
			k.mu.Lock()
			defer k.mu.Unlock()
			k.ring, k.loading = l.ring, nil
		}()
	}
	k.mu.Unlock()
	select {
	case <-l.over:
		return l.ring, l.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (k *sealKeys) load(ctx context.Context) (*seal.Ring, error) {
	keys := []secret.Secret{k.own}
	if k.own.IsZero() {
		made := seal.NewKey()
		if k.keeper != nil {
			ctx, cancel := context.WithTimeout(ctx, sealTimeout)
			defer cancel()
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
	return ring, nil
}

// sealTimeout bounds the load of the keys from the store.
const sealTimeout = 30 * time.Second
