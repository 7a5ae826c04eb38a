package wire

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testdata"
)

// appendPlain is Append on a wire that can express all of a definition.
func (d *Definitions) appendPlain(dst []byte, shared *Shared, tools []*lathe.ToolSpec, form Strict, encode func(dst []byte, t *lathe.ToolSpec) []byte) []byte {
	dst, _ = d.Append(dst, shared, tools, Form{Strict: form}, func(dst []byte, t *lathe.ToolSpec) ([]byte, []string) { return encode(dst, t), nil })
	return dst
}

// definitionsOf encodes the tools through d, and returns the text and the number of tools that were encoded for it.
func definitionsOf(d *Definitions, form Strict, tools []*lathe.ToolSpec) (text string, encoded int) {
	b := d.appendPlain([]byte("["), nil, tools, form, func(dst []byte, t *lathe.ToolSpec) []byte {
		encoded++
		return fmt.Appendf(dst, "%s/%0*d", t.Name, minShared/20, form)
	})
	return string(b), encoded
}

func someTools(n int, prefix string) (tools []*lathe.ToolSpec, text string) {
	names := make([]string, n)
	zeros := fmt.Sprintf("/%0*d", minShared/20, 0)
	for i := range names {
		name := fmt.Sprintf("%s%d", prefix, i)
		names[i] = name + zeros
		tools = append(tools, &lathe.ToolSpec{Name: name})
	}
	return tools, "[" + strings.Join(names, ",")
}

// The definitions of a long list of tools are encoded for its first request, and copied afterwards; those of lists with tools that clients
// declare, and of short lists, are encoded for each.
func TestDefinitionsAreEncodedOnce(t *testing.T) {
	t.Parallel()
	const n = 100
	tools, want := someTools(n, "t")
	var d Definitions
	for i, encoded := range []int{n, 0, 0} {
		if text, got := definitionsOf(&d, StrictOff, tools); text != want || got != encoded {
			t.Errorf("request %d: %d encoded, want %d; %.80s", i, got, encoded, text)
		}
	}
	mine := []*lathe.ToolSpec{{Name: "mine", Owner: lathe.OwnerClient}, {Name: "wired", Wire: lathe.WireOpenAIChat}}
	for range 2 {
		if text, got := definitionsOf(&d, StrictOff, append(mine, tools...)); got != n+2 || !strings.HasSuffix(text, ","+want[1:]) {
			t.Errorf("with those of a client: %d encoded", got)
		}
	}
	if text, got := definitionsOf(&d, StrictWhole, tools); got != n || text == want {
		t.Errorf("in another form: %d encoded", got)
	}
	if _, got := definitionsOf(nil, StrictOff, tools); got != n {
		t.Errorf("without a memory: %d encoded", got)
	}
	few := tools[:10]
	for range 2 {
		if _, got := definitionsOf(&d, StrictWhole, few); got != len(few) {
			t.Errorf("few tools: %d encoded", got)
		}
	}
}

// Several goroutines may use it.
func TestDefinitionsOfManyGoroutines(t *testing.T) {
	t.Parallel()
	var d Definitions
	a, wantA := someTools(20, "a")
	b, wantB := someTools(30, "b")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 50 {
				tools, want := a, wantA
				if i%2 == 1 {
					tools, want = b, wantB
				}
				if text, _ := definitionsOf(&d, StrictOff, tools); text != want {
					t.Errorf("%.100s", text)
				}
			}
		})
	}
	wg.Wait()
}

// Kept definitions are copied into memory that is allocated once, not into memory that grows with them.
func TestDefinitionsGrowOnce(t *testing.T) {
	testdata.CountsAllocations(t)
	var d Definitions
	tools := make([]*lathe.ToolSpec, 2000)
	for i := range tools {
		tools[i] = &lathe.ToolSpec{Name: "t"}
	}
	text := bytes.Repeat([]byte("x"), 400)
	encode := func(dst []byte, _ *lathe.ToolSpec) []byte { return append(dst, text...) }
	want := d.appendPlain(nil, nil, tools, StrictOff, encode)
	var got []byte
	const most = 4 // 1, or 2 with the race detector; memory that grows takes 25
	if n := testing.AllocsPerRun(20, func() { got = d.appendPlain(nil, nil, tools, StrictOff, encode) }); n > most {
		t.Errorf("%v allocations, want at most %d", n, most)
	}
	if !bytes.Equal(got, want) {
		t.Error("the copies differ from what was encoded")
	}
}

// sharedOf encodes the tools through d, and returns the definitions with those that are shared, and whether they are.
func sharedOf(d *Definitions, form Strict, tools []*lathe.ToolSpec, encode func(dst []byte, t *lathe.ToolSpec) []byte) (text string, shared bool) {
	var s Shared
	b := d.appendPlain([]byte("["), &s, tools, form, encode)
	return string(b[:s.At]) + string(s.Text) + string(b[s.At:]), s.Text != nil
}

// Long definitions of the server's tools are shared by the requests that offer the same list, whichever lists others offer; all others
// are appended.
func TestLongDefinitionsAreShared(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", minShared/10)
	encode := func(dst []byte, t *lathe.ToolSpec) []byte { return append(append(dst, t.Name...), long...) }
	var d Definitions
	tools, _ := someTools(20, "t")
	for name, list := range map[string][]*lathe.ToolSpec{"all": tools, "some": tools[:15]} {
		want := string((*Definitions)(nil).appendPlain([]byte("["), nil, list, StrictOff, encode))
		for round := range 3 {
			if got, shared := sharedOf(&d, StrictOff, list, encode); got != want || shared != (round > 0) {
				t.Errorf("%s, request %d: shared %t, %d bytes, want %d", name, round, shared, len(got), len(want))
			}
		}
		if got, shared := sharedOf(&d, StrictWhole, list, encode); got != want || shared {
			t.Errorf("%s, in another form: shared %t, %d bytes", name, shared, len(got))
		}
	}
	var first Shared
	d.appendPlain(nil, &first, tools, StrictOff, encode)
	var again Shared
	d.appendPlain(nil, &again, tools, StrictOff, encode)
	if &first.Text[0] != &again.Text[0] {
		t.Error("two requests have copies of the same text")
	}
	mine := append([]*lathe.ToolSpec{{Name: "mine", Owner: lathe.OwnerClient}}, tools...)
	short, _ := someTools(20, "s")
	for range 2 {
		if _, shared := sharedOf(&d, StrictOff, mine, encode); shared {
			t.Error("the definition of a client's tool is shared")
		}
		if _, shared := sharedOf(&d, StrictOff, short, func(dst []byte, t *lathe.ToolSpec) []byte { return append(dst, t.Name...) }); shared {
			t.Error("short definitions are shared")
		}
		if got := d.appendPlain(nil, nil, tools, StrictOff, encode); len(got) < minShared {
			t.Error("definitions are missing where none may be shared")
		}
	}
}

// What is kept for sharing is bounded in lists and in bytes.
func TestSharedDefinitionsAreBounded(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ size, rounds, most int }{{minShared, maxShared + 2, maxShared}, {maxDefinitionsBytes / 2, 3, 2}, {maxDefinitionsBytes + 10, 1, 0}} {
		var d Definitions
		text := bytes.Repeat([]byte("x"), tt.size/10)
		encode := func(dst []byte, _ *lathe.ToolSpec) []byte { return append(dst, text...) }
		for range tt.rounds {
			tools, _ := someTools(10, "t")
			d.appendPlain(nil, &Shared{}, tools, StrictOff, encode)
			kept, size := d.lists.Load(), 0
			if kept == nil {
				kept = new([]sharedList)
			}
			for _, l := range *kept {
				size += len(l.text)
			}
			if len(*kept) > tt.most || size > maxDefinitionsBytes {
				t.Errorf("%d lists of %d bytes are kept, want at most %d", len(*kept), size, tt.most)
			}
		}
		if kept := d.lists.Load(); tt.most == maxShared && len(*kept) != maxShared {
			t.Errorf("%d lists are kept, want %d", len(*kept), maxShared)
		}
	}
}
