package server

import (
	"net/http"
	"runtime"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// plainEncoder appends bytes as they are.
type plainEncoder struct{}

func (plainEncoder) appendEvent(dst []byte, _ *event.Event) []byte            { return dst }
func (plainEncoder) appendEnd(dst []byte, _ *event.Result, _ *problem) []byte { return dst }
func (plainEncoder) header(http.Header)                                       {}
func (plainEncoder) appendRaw(dst []byte, raw *lathe.Raw) []byte              { return append(dst, raw.Bytes...) }

// A run that never waits for its model server shares the only thread with the goroutine that writes. It is not parallel, for it
// sets the number of threads.
func TestPipeDoesNotGrowToTheSizeOfTheAnswer(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const pieces, size = 16_000, 256 // 4 MiB
	p := newPipe(plainEncoder{}, 8<<20, func() {})
	defer p.close()
	over, largest := make(chan int), 0
	go func() {
		read, spare := 0, takeBuffer()
		for read < pieces*size {
			<-p.wake
			b, _, _ := p.take(spare)
			read, largest, spare = read+len(b), max(largest, len(b)), b
		}
		over <- read
	}()
	raw := &lathe.Raw{Bytes: make([]byte, size)}
	for range pieces {
		p.takeRaw(raw)
	}
	if read := <-over; read != pieces*size || largest > 1<<20 {
		t.Errorf("%d bytes of %d were read, at most %d at once; want at most %d", read, pieces*size, largest, 1<<20)
	}
}
