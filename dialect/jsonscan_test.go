package dialect

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/testdata"
)

// scanAll reads text in pieces of size and reports whether it is one whole value, with white space
// around it at most.
func scanAll(text string, size, outer int) bool {
	j := jsonScan{outer: outer}
	for text != "" {
		piece := text[:min(size, len(text))]
		text = text[len(piece):]
		for piece != "" && j.state != jsonDone && j.state != jsonBad {
			piece = piece[j.scan(piece):]
		}
		if trimSpace(piece) != "" {
			return false
		}
	}
	return j.whole()
}

// The scan takes exactly what the grammar allows. It leaves encoding to others: a file that is
// bad only as UTF-8 is whole here.
func TestJSONScanSuite(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(testdata.Dir(t, "JSONTestSuite", "test_parsing"), "*.json"))
	if err != nil || len(files) < 293 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(file)
		_, err = rawjson.Scan(data, rawjson.SkipSpace(data, 0))
		for _, size := range []int{1, 3, 1 << 20} {
			for _, outer := range []int{0, ownLevels, ownLevels + 1} {
				got := scanAll(string(data), size, outer)
				switch {
				case name[0] == 'y' && !got:
					t.Errorf("%s in pieces of %d: refused", name, size)
				case name[0] == 'n' && got && !strings.Contains(name, "utf8") && !strings.Contains(name, "utf-8"):
					t.Errorf("%s in pieces of %d: accepted", name, size)
				case name[0] == 'i' && got != (err == nil):
					t.Errorf("%s in pieces of %d: %v, rawjson says %v", name, size, got, err)
				}
			}
		}
	}
}

func TestPlainRun(t *testing.T) {
	t.Parallel()
	for _, stop := range []string{`"`, `\`, "\x00", "\x1f", "\n"} {
		for _, fill := range []string{"a", " ", "!", "\x7f", "\x80", "\xff", "#", "]", "["} {
			for n := range 40 {
				s := strings.Repeat(fill, n)
				if got := plainRun(s); got != n {
					t.Fatalf("plainRun(%q) = %d", s, got)
				}
				if got := plainRun(s + stop + fill + stop); got != n {
					t.Fatalf("plainRun(%q) = %d, want %d", s+stop, got, n)
				}
			}
		}
	}
}

// A piece that is read the short way gives what single bytes give, in every state that a dialect is in after a cut of its call.
func TestShortWayAgreesWithBytes(t *testing.T) {
	t.Parallel()
	for _, d := range table {
		o := &Options{MaxPayloadBytes: 200, Tools: []*lathe.ToolSpec{{Name: "f", Schema: []byte(`{"type":"object","properties":{"a":{"type":"string"},"n":{}}}`)}}}
		if d.name == "glimmer" {
			o.Prefix = " to=f<|message|>"
		}
		call := string(d.AppendCall(nil, lathe.ToolCall{ID: "call00001", Name: "f", Arguments: `{"a":"x < y \"q\" <|im\n","n":"[1, 2]"}`}))
		for _, cut := range []int{len(call), len(call) / 2, len(call) / 3, len(call) * 2 / 3} {
			for _, piece := range []string{"word", `a\"b`, "a\n", "<", " </s", "`x`", "é", strings.Repeat("long ", 60), "\"", "]}", "</tool_call>"} {
				text := call[:cut] + piece + "and more" + call[cut:]
				want, shown, _ := readPieces(d.NewParser(o), text, 1)
				p := d.NewParser(o)
				var deltas []lathe.Delta
				for _, part := range []string{call[:cut], piece, "and more", call[cut:]} {
					deltas = p.Append(deltas, part)
				}
				deltas, _ = p.Flush(deltas)
				var c Collector
				c.AddAll(deltas)
				var visible strings.Builder
				for _, x := range deltas {
					if x.Kind == lathe.DeltaText && !x.Unreadable {
						visible.WriteString(x.Text)
					}
				}
				if got := c.Message(); !reflect.DeepEqual(got, want) || visible.String() != shown {
					t.Errorf("%s, %q at %d of %q:\n got %+v %q\nwant %+v %q", d.name, piece, cut, call, got, visible.String(), want, shown)
				}
			}
		}
	}
}
