package middleware

import (
	"bytes"
	"io"
	"testing"
)

// thrifty gives a text in pieces and records the most memory that its reader had for more than had arrived.
type thrifty struct {
	text  []byte
	given int
	most  float64
}

func (r *thrifty) Read(p []byte) (int, error) {
	if size := r.given + len(p); size > maxAhead+1 {
		r.most = max(r.most, float64(size-1)/float64(r.given))
	}
	if r.given == len(r.text) {
		return 0, io.EOF
	}
	n := copy(p, r.text[r.given:min(r.given+1000, len(r.text))])
	r.given += n
	return n, nil
}

// A body is read whole, whatever length was declared, and a declared length alone allocates at most maxAhead.
func TestBodiesAreReadInMemoryThatHasArrived(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 511, 512, 65_535, 65_536, 65_537, 1_000_000} {
		for _, declared := range []int64{-1, 0, int64(size), 10_000_000} {
			src := &thrifty{text: bytes.Repeat([]byte("x"), size)}
			got, err := readAll(src, 20_000_000, declared)
			if err != nil || !bytes.Equal(got, src.text) {
				t.Errorf("%d bytes, %d declared: %d bytes, %v", size, declared, len(got), err)
			}
			if src.most > maxGrowth {
				t.Errorf("%d bytes, %d declared: memory for %.1f times what had arrived", size, declared, src.most)
			}
		}
	}
	src := &thrifty{text: bytes.Repeat([]byte("x"), 1000)}
	if got, err := readAll(src, 100, 1000); err != nil || len(got) != 101 {
		t.Errorf("of a limit of 100, %d bytes were read: %v", len(got), err)
	}
}
