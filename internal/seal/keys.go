package seal

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/secret"
)

// keyName is the name of the key in the store.
const keyName = "seal_key"

// Keys loads the keys of a [Ring] at their first use: from the configuration, from the store, or, without a store, a
// random key of this process.
type Keys struct {
	own, previous secret.Secret
	keeper        Keeper // nil: the store keeps no secrets

	mu      sync.Mutex
	ring    *Ring
	loading *keyLoad // nil: no load is under way
}

// A keyLoad is one load of the keys. All callers wait for it that come while it is under way.
type keyLoad struct {
	over chan struct{}
	ring *Ring // with err, good once over is closed
	err  error
}

// A Keeper stores a secret for all servers on a store.
type Keeper interface {
	// SharedSecret returns the secret of that name; if there is none, it stores made.
	SharedSecret(ctx context.Context, name string, made []byte) ([]byte, error)
}

// NewKeys returns the keys own, which seals, and previous, which opens too. If own is zero, keeper has a random key; nil: it is of this process.
func NewKeys(own, previous secret.Secret, keeper Keeper) (*Keys, error) {
	k := &Keys{own: own, previous: previous, keeper: keeper}
	if k.own.IsZero() && !k.previous.IsZero() {
		return nil, errors.New("serve.previous_seal_key goes with serve.seal_key")
	}
	if !k.own.IsZero() {
		if _, err := k.Get(context.Background()); err != nil {
			return nil, errors.New("serve.seal_key and serve.previous_seal_key need at least 32 characters")
		}
	}
	return k, nil
}

// Get returns the key ring. The error is that of the store, and the next call tries again, or that of ctx. A load continues when the
// request that began it ends.
func (k *Keys) Get(ctx context.Context) (*Ring, error) {
	k.mu.Lock()
	if k.ring != nil {
		defer k.mu.Unlock()
		return k.ring, nil
	}
	l := k.loading
	if l == nil {
		l = &keyLoad{over: make(chan struct{})}
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

func (k *Keys) load(ctx context.Context) (*Ring, error) {
	keys := []secret.Secret{k.own}
	if k.own.IsZero() {
		made := NewKey()
		if k.keeper != nil {
			ctx, cancel := context.WithTimeout(ctx, loadTimeout)
			defer cancel()
			kept, err := k.keeper.SharedSecret(ctx, keyName, made)
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
	ring, err := NewRing(keys...)
	if err != nil {
		return nil, &lathe.Error{Code: lathe.CodeInvalidConfig, Op: "server: make the keys of seals", Err: err}
	}
	return ring, nil
}

// loadTimeout bounds the load of the keys from the store.
const loadTimeout = 30 * time.Second
