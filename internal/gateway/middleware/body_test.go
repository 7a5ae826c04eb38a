package middleware

import (
	"bytes"
	"io"
	"sync"
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
			got, err := ReadAll(src, declared, BodyLimit{MaxBytes: 20_000_000})
			if err != nil || !bytes.Equal(got, src.text) {
				t.Errorf("%d bytes, %d declared: %d bytes, %v", size, declared, len(got), err)
			}
			if src.most > maxGrowth {
				t.Errorf("%d bytes, %d declared: memory for %.1f times what had arrived", size, declared, src.most)
			}
		}
	}
	for _, most := range []int64{70_000, 140_000, 999_999} { // of a longer body, one byte more is read
		src := &thrifty{text: bytes.Repeat([]byte("x"), 1_000_000)}
		if got, err := ReadAll(src, 1_000_000, BodyLimit{MaxBytes: most}); err != nil || int64(len(got)) != most+1 {
			t.Errorf("of a limit of %d, %d bytes were read: %v", most, len(got), err)
		}
	}
	src := &thrifty{text: bytes.Repeat([]byte("x"), 1000)}
	if got, err := ReadAll(src, 1000, BodyLimit{MaxBytes: 100}); err != nil || len(got) != 101 {
		t.Errorf("of a limit of 100, %d bytes were read: %v", len(got), err)
	}
}

// The memory that bodies share while they arrive is not part of any of them.
func TestBodiesDoNotShareMemory(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			var bodies [][]byte
			for i := range 20 {
				text := bytes.Repeat([]byte{byte(n), byte(i)}, 100_000+n*i)
				got, err := ReadAll(bytes.NewReader(text), int64(len(text)), BodyLimit{MaxBytes: 1 << 20})
				if err != nil || cap(got) > len(text)+8192 {
					t.Errorf("%d bytes: capacity %d, %v", len(text), cap(got), err)
				}
				bodies = append(bodies, got)
			}
			for i, got := range bodies {
				if !bytes.Equal(got, bytes.Repeat([]byte{byte(n), byte(i)}, 100_000+n*i)) {
					t.Errorf("body %d of %d was changed", i, n)
				}
			}
		})
	}
	all.Wait()
}
