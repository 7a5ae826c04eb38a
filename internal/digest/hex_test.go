package digest

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
)

func TestEncodeHexWritesEveryByte(t *testing.T) {
	t.Parallel()
	for shift := range sha256.Size {
		for b := range 256 {
			var sum [sha256.Size]byte
			for i := range sum {
				sum[i] = byte(b + (i+shift)*7)
			}
			var dst [2 * sha256.Size]byte
			encodeHex(dst[:], &sum)
			if want := hex.EncodeToString(sum[:]); string(dst[:]) != want {
				t.Fatalf("got %s, want %s", dst, want)
			}
		}
	}
}
