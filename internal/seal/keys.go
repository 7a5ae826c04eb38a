package seal

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/secret"
)

// keyName is the name of the secret in the store.
const keyName = "seal_key"

// Keys loads the keys of a [Ring] at first use: from the configuration, else from the store. Without a store it uses a random key of this
// process.
type Keys struct {
	own, previous secret.Secret
	keeper        Keeper // nil: the store does not support secrets

	mu      sync.Mutex
	ring    *Ring
	loading *keyLoad // load in progress; nil: none
}

// A keyLoad is one load of the keys. Callers that need the keys during the load wait for its end.
type keyLoad struct {
	over chan struct{}
	ring *Ring // valid after over is closed, as is err
	err  error
}

// A Keeper stores secrets that all gateways on a store share.
type Keeper interface {
	// SharedSecret returns the secret of that name. If it does not exist, SharedSecret stores made and returns it.
	SharedSecret(ctx context.Context, name string, made []byte) ([]byte, error)
}

// NewKeys returns keys that seal with own, and open with own and previous. If own is zero, the key is a random secret that keeper stores;
// if keeper is nil too, it is a random key of this process.
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

// Get returns the key ring. The error is that of the store, after which the next call tries again, or that of ctx. A load continues after
// the end of the request that began it.
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
		made := newKey()
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
		return nil, lathe.CodeInvalidConfig.Wrap("server: make the keys of seals", err)
	}
	return ring, nil
}

// loadTimeout limits the time of a load of the keys from the store.
const loadTimeout = 30 * time.Second
