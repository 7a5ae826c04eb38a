package gemini

import (
	"sync"
	"testing"
)

// The first readers of a set, which make its maps, may be several goroutines.
func TestNameSetIsReadByManyAtFirst(t *testing.T) {
	t.Parallel()
	s := newNameSet("topP", "seed")
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			list, err := s.read(nil, nil, []byte(`{"top_p":1,"seed":2}`), "")
			if err != nil || len(list) != 2 || list[0].name != "topP" || !list[1].known {
				t.Errorf("%v, %v", list, err)
			}
		})
	}
	readers.Wait()
}
