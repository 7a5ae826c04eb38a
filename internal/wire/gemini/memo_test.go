package gemini

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lathe-run/lathe"
)

// assembleEvents returns the deltas and the answer of events, with or without the memo, and how many events it matched.
func assembleEvents(events []string, memo bool) (deltas []lathe.Delta, f *lathe.Finish, sound bool, hits int, err error) {
	a := Codec{}.NewAssembler(nil).(*Assembler)
	for _, data := range events {
		if !memo {
			a.memo.known = false
		} else if _, _, ok := a.memo.match([]byte(data)); ok {
			hits++
		}
		if deltas, err = a.Append(deltas, "", []byte(data)); err != nil {
			return deltas, nil, false, hits, err
		}
	}
	f, err = a.Finish(true)
	return deltas, f, a.Sound(), hits, err
}

// The memo changes nothing but the time: also for events that are damaged at any place, the result is that of parsing each event.
func TestMemoChangesNothing(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	const usage = `"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":N,"totalTokenCount":9}`
	for name, form := range map[string]string{
		"text":        `{"candidates":[{"content":{"role":"model","parts":[{"text":T}]},"index":0}],"modelVersion":"m","responseId":"r"}`,
		"thought":     `{"candidates":[{"content":{"role":"model","parts":[{"thought":true,"text":T}]}}],` + usage + `}`,
		"usage first": `{` + usage + `,"candidates":[{"content":{"parts":[{"text":T}]}}]}`,
	} {
		var events []string
		for i, text := range []string{`"a"`, `"word "`, `"\"q\" \\ \ud83d\ude00"`, `"é"`, `""`, `"x"`, `"end"`} {
			events = append(events, strings.NewReplacer("T}", text+"}", "N", string(rune('1'+i))).Replace(form))
		}
		events = append(events, `{"candidates":[{"content":{"parts":[{"text":"."}]},"finishReason":"STOP"}]}`)
		same := func(events []string) (hits int) {
			t.Helper()
			d1, f1, s1, hits, err1 := assembleEvents(events, true)
			d2, f2, s2, _, err2 := assembleEvents(events, false)
			if diff := cmp.Diff(d2, d1) + cmp.Diff(f2, f1, cmpopts.EquateEmpty()); diff != "" || s1 != s2 || (err1 == nil) != (err2 == nil) {
				t.Fatalf("%s: sound %v %v, %v %v\n%s\n%s", name, s1, s2, err1, err2, diff, strings.Join(events, "\n"))
			}
			return hits
		}
		if hits := same(events); hits < 6 {
			t.Errorf("%s: %d events matched", name, hits)
		}
		for range 3000 {
			damaged := append([]string(nil), events...)
			i := 3 + random.IntN(4)
			b := []byte(damaged[i])
			at := random.IntN(len(b))
			switch random.IntN(4) {
			case 0:
				b[at] = byte(random.IntN(256))
			case 1:
				b = append(b[:at], b[at+1:]...)
			case 2:
				b = append(b[:at], append([]byte{`0"\ {},:`[random.IntN(8)]}, b[at:]...)...)
			case 3:
				b = []byte(strings.Replace(string(b), `"text":`, `"text":`+[]string{"1", "null,\"text\":", "{}", `"x","text":`}[random.IntN(4)], 1))
			}
			damaged[i] = string(b)
			same(damaged)
		}
	}
}
