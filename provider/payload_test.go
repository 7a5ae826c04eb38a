package provider

import (
	"io"
	"testing"
	"testing/iotest"

	"github.com/lathe-run/lathe/internal/wire"
)

func TestPayloadReadsItsPieces(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"request", "", "a"} {
		p := &payload{body: []byte(body)}
		want := body
		if at := len(body) / 2; at > 0 {
			p.shared = wire.Shared{At: at, Text: []byte("[shared]")}
			want = body[:at] + "[shared]" + body[at:]
		}
		if got := string(p.whole()); got != want {
			t.Errorf("whole: got %q, want %q", got, want)
		}
		if p.size() != int64(len(want)) {
			t.Errorf("size is %d, want %d", p.size(), len(want))
		}
		for name, wrap := range map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader} {
			r, err := p.get()
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(wrap(r))
			if err != nil || string(got) != want {
				t.Errorf("%s: got %q, %v, want %q", name, got, err, want)
			}
		}
	}
}
