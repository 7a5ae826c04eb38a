package storetest

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/store"
)

// TestSecrets runs the tests for [store.SecretKeeper]. open is as of [Test].
func TestSecrets(t *testing.T, open func() store.SecretKeeper) {
	t.Helper()
	t.Run("keeps the first value of many", func(t *testing.T) {
		t.Parallel()
		s := open()
		const writers = 8
		got := make([][]byte, writers)
		var all sync.WaitGroup
		for i := range writers {
			all.Go(func() {
				v, err := s.SharedSecret(t.Context(), "one", fmt.Appendf(nil, "value %d", i))
				if err != nil {
					t.Error(err)
				}
				got[i] = v
			})
		}
		all.Wait()
		for i := range got {
			if len(got[i]) == 0 || !bytes.Equal(got[i], got[0]) {
				t.Errorf("got %q and %q", got[i], got[0])
			}
		}
		other, err := s.SharedSecret(t.Context(), "two", []byte{0, 0xff})
		if err != nil || !bytes.Equal(other, []byte{0, 0xff}) {
			t.Errorf("under another name: %q, %v", other, err)
		}
		other[0] = 1
		if again, err := s.SharedSecret(t.Context(), "two", []byte("later")); err != nil || !bytes.Equal(again, []byte{0, 0xff}) {
			t.Errorf("a second time: %q, %v", again, err)
		}
	})
	t.Run("refuses what cannot be a secret", func(t *testing.T) {
		t.Parallel()
		s := open()
		for name, value := range map[string][]byte{"": []byte("x"), "empty": nil, "large": make([]byte, 4097)} {
			if _, err := s.SharedSecret(t.Context(), name, value); lathe.CodeOf(err) != lathe.CodeInvalidRequest {
				t.Errorf("%q: %v", name, err)
			}
		}
	})
	t.Run("respects the context with secrets", func(t *testing.T) {
		t.Parallel()
		ctx := cancelled(t)
		if _, err := open().SharedSecret(ctx, "one", []byte("x")); lathe.CodeOf(err) != lathe.CodeCancelled {
			t.Error(err)
		}
	})
}
