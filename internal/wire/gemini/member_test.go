package gemini

import (
	"sync"
	"testing"

	"github.com/lathe-run/lathe/internal/wire"
)

// The first readers of a set, which make its maps, may be several goroutines.
func TestNameSetIsReadByManyAtFirst(t *testing.T) {
	t.Parallel()
	s := newNameSet("topP seed")
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			r := reader{Reader: wire.NewReader(nil)}
			o := r.object("", []byte(`{"top_p":1,"seed":2}`), s)
			if string(o.Get("topP")) != "1" || string(o.Get("seed")) != "2" || !o.IsRead() {
				t.Error(o)
			}
		})
	}
	readers.Wait()
}
