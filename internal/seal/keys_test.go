package seal

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// A slowKeeper gives its answers when the test sends them.
type slowKeeper struct {
	asked   int
	answers chan error
}

func (k *slowKeeper) SharedSecret(_ context.Context, _ string, made []byte) ([]byte, error) {
	k.asked++
	return made, <-k.answers
}

// Requests that come during a slow load of the keys wait for that one load, and no longer than their clients do. After a failure the
// next request loads them again.
func TestSealKeysAreLoadedOnceForAllThatWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		keeper := &slowKeeper{answers: make(chan error)}
		keys := &Keys{keeper: keeper}
		first, leave := context.WithCancel(t.Context())
		results := make(chan error, 8)
		get := func(ctx context.Context) {
			go func() {
				_, err := keys.Get(ctx)
				results <- err
			}()
			synctest.Wait()
		}
		get(first)
		get(t.Context())
		get(t.Context())
		leave()
		if err := <-results; !errors.Is(err, context.Canceled) {
			t.Errorf("the client that left got %v", err)
		}
		down := errors.New("the store is down")
		keeper.answers <- down
		for range 2 {
			if err := <-results; !errors.Is(err, down) {
				t.Errorf("got %v", err)
			}
		}
		get(t.Context())
		keeper.answers <- nil
		if err := <-results; err != nil || keeper.asked != 2 {
			t.Errorf("%v after %d loads", err, keeper.asked)
		}
		if _, err := keys.Get(t.Context()); err != nil || keeper.asked != 2 {
			t.Errorf("%v after %d loads", err, keeper.asked)
		}
	})
}
