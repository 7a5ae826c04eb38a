package guest_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/guest"
	. "github.com/lathe-run/lathe/internal/wasmrt/wasmtest"
)

// T32: whatever a guest calls with whatever numbers, the host answers or ends it; it never breaks.
func FuzzT32HostCalls(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6}, int32(0), int32(8), int32(-1), int32(131064))
	f.Add([]byte{0, 7, 8, 9, 10, 11, 12}, int32(1000), int32(1001), int32(1), int32(1<<31-1))
	f.Add([]byte{0, 0, 1, 3, 4, 4, 5, 6, 6}, int32(1000), int32(1024), int32(4), int32(2))
	f.Fuzz(func(t *testing.T, calls []byte, a, b, c, d int32) {
		const local = 13 // the calls that do something
		p := newProbe()
		p.Data(textAt, `user{"key":"max_iterations","value":2}`)
		numbers := [...]int32{a, b, c, d, 1000, 1001, textAt, 4, wordAt, 1, 2}
		var seed uint64
		for i, at := range calls[:min(len(calls), 24)] {
			name := names[int(at)%local]
			args := make([]any, signatures[name])
			for j := range args {
				seed = seed*6364136223846793005 + uint64(at) + uint64(i)
				args[j] = int(numbers[(seed>>33)%uint64(len(numbers))])
			}
			p.call(name, args...)
		}
		p.Func("_start", nil, nil, 4, p.code, p.print(Const(resultsAt), Const(int32(4*p.steps))))
		r := runGuest(t, p.Bytes(), newWorld(&script{}), &guest.Limits{HostCalls: 100}, &guest.RunOptions{Timeout: time.Second})
		switch r.Reason {
		case lathe.ReasonAnswered:
			for at := 0; at+4 < len(r.out); at += 4 {
				if rc := int32(binary.LittleEndian.Uint32([]byte(r.out[at:]))); rc < -38 {
					t.Errorf("call %d returns %d", at/4, rc)
				}
			}
		case lathe.ReasonRunTimeout: // it waits for what will not come
		default:
			t.Errorf("ended %s: %v", r.Reason, r.Err)
		}
	})
}
