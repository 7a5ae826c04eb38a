package stream

import (
	"net/http"
	"runtime"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/gateway/problem"
)

// plainEncoder appends bytes as they are.
type plainEncoder struct{}

func (plainEncoder) AppendEvent(dst []byte, _ *event.Event) []byte                    { return dst }
func (plainEncoder) AppendEnd(dst []byte, _ *event.Result, _ *problem.Problem) []byte { return dst }
func (plainEncoder) Header(http.Header)                                               {}
func (plainEncoder) AppendRaw(dst []byte, raw *lathe.Raw) []byte                      { return append(dst, raw.Bytes...) }

// A run that never waits for its model server shares the only thread with the goroutine that writes. It is not parallel, for it
// sets the number of threads.
func TestPipeDoesNotGrowToTheSizeOfTheAnswer(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const pieces, size = 16_000, 256 // 4 MiB
	p := NewPipe(plainEncoder{}, 8<<20, func() {})
	defer p.Close()
	over, largest := make(chan int), 0
	go func() {
		read := 0
		for read < pieces*size {
			<-p.wake
			if b, _, _ := p.Take(); b != nil {
				read, largest = read+len(b.B), max(largest, len(b.B))
				b.Release()
			}
		}
		over <- read
	}()
	raw := &lathe.Raw{Bytes: make([]byte, size)}
	for range pieces {
		p.TakeRaw(raw)
	}
	if read := <-over; read != pieces*size || largest > 1<<20 {
		t.Errorf("%d bytes of %d were read, at most %d at once; want at most %d", read, pieces*size, largest, 1<<20)
	}
}

// A pipe has a buffer only while something waits in it, so that an idle stream holds none.
func TestPipeHasNoBufferWhileNothingWaits(t *testing.T) {
	t.Parallel()
	p := NewPipe(plainEncoder{}, 1<<20, func() {})
	defer p.Close()
	for range 100 {
		p.Emit(t.Context(), event.Event{}) // says nothing to the client
		if p.buf != nil || len(p.wake) != 0 {
			t.Fatal("an event that is not shown takes a buffer")
		}
		p.TakeRaw(&lathe.Raw{Bytes: []byte("one")})
		p.TakeRaw(&lathe.Raw{Bytes: []byte("two")})
		b, _, _ := p.Take()
		if b == nil || string(b.B) != "onetwo" || p.buf != nil {
			t.Fatalf("took %v, and %v is left", b, p.buf)
		}
		p.TakeRaw(&lathe.Raw{Bytes: []byte("three")}) // while the first are written
		if string(b.B) != "onetwo" {
			t.Fatalf("what was taken became %q", b.B)
		}
		b.Release()
		if b, _, _ = p.Take(); b == nil || string(b.B) != "three" {
			t.Fatalf("took %v", b)
		}
		b.Release()
		<-p.wake
	}
}
