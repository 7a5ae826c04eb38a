package rawjson

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/testdata"
)

func TestScanFindsTheEnd(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text string
		from int
		end  int
		kind string
	}{
		{`{"a":1} tail`, 0, 7, ""},
		{`  {"a":1}`, 0, 9, ""},
		{`xx[1,2]yy`, 2, 7, ""},
		{`"a"b`, 0, 3, ""},
		{`123abc`, 0, 3, ""},
		{`1,2`, 0, 1, ""},
		{`0}`, 0, 1, ""},
		{`truely`, 0, 4, ""},
		{`{"a":1,"a":2}`, 0, 13, ""},
		{`"\ud800"`, 0, 8, ""},
		{"\"\xff\"", 0, 3, ""},
		{`{"a":{"b":[{}, [], ""]}}]`, 0, 24, ""},
		{`{"a":[1,2`, 0, 9, KindEnd},
		{`{"a":"x\`, 0, 8, KindEnd},
		{`{"a":"x\u0`, 0, 10, KindEnd},
		{`{"a`, 0, 3, KindEnd},
		{`{"a":1,`, 0, 7, KindEnd},
		{`[1`, 0, 2, KindEnd},
		{`[`, 0, 1, KindEnd},
		{`  `, 0, 2, KindEmpty},
		{``, 0, 0, KindEmpty},
		{`abc`, 3, 3, KindEmpty},
		{`{"a":1]`, 0, 6, KindCharacter},
		{`[1}`, 0, 2, KindCharacter},
		{`[1,]`, 0, 3, KindCharacter},
		{`{,}`, 0, 1, KindCharacter},
		{`{"a":1,}`, 0, 7, KindCharacter},
		{`{"a":}`, 0, 5, KindCharacter},
		{`{"a"=1}`, 0, 4, KindCharacter},
		{"[\"\t\"]", 0, 2, KindControl},
		{`["\q"]`, 0, 2, KindEscape},
		{`[01]`, 0, 1, KindNumber},
		{`[nil]`, 0, 1, KindLiteral},
	}
	for _, tt := range tests {
		end, err := Scan([]byte(tt.text), tt.from)
		if tt.kind == "" {
			if err != nil || end != tt.end {
				t.Errorf("Scan(%q, %d) = %d, %v; want %d", tt.text, tt.from, end, err, tt.end)
			}
			continue
		}
		if se, ok := err.(*SyntaxError); !ok || se.Kind != tt.kind || se.Offset != tt.end {
			t.Errorf("Scan(%q, %d) = %v, want %s at %d", tt.text, tt.from, err, tt.kind, tt.end)
		}
	}
}

// Scan knows the grammar alone, as encoding/json's Valid does.
func TestScanAgreesWithStandardOnSuite(t *testing.T) {
	t.Parallel()
	dir := testdata.Dir(t, "JSONTestSuite", "test_parsing")
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) < 293 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := scansWhole(text), json.Valid(text); got != want {
			t.Errorf("%s: Scan accepts: %v, want %v", filepath.Base(f), got, want)
		}
	}
}

func scansWhole(text []byte) bool {
	end, err := Scan(text, 0)
	return err == nil && SkipSpace(text, end) == len(text)
}

// Every place of a special byte within the eight that are looked at at once, and beside bytes
// that differ from it in one bit.
func TestPlainEnd(t *testing.T) {
	t.Parallel()
	for n := range 25 {
		for _, stop := range []string{`"`, `\`, "\x00", "\x1f", "\n", ""} {
			for _, fill := range []string{"a", " ", "!", "#", "[", "]", "\x7f", "\x80", "\xff", "\xa2", "\xdc", "\x9f"} {
				for _, tail := range []string{"", `"`, "\x01\x01\x01\x01\x01\x01\x01\x01", "\xff\xff\xff\xff\xff\xff\xff\xff\xff"} {
					if stop == "" && tail != "" {
						continue
					}
					text := strings.Repeat(fill, n) + stop + tail
					wantASCII := n == 0 || fill[0] < 0x80
					if end, ascii := plainEnd(text, 0); end != n || ascii != wantASCII {
						t.Errorf("plainEnd(%q) = %d, %v; want %d, %v", text, end, ascii, n, wantASCII)
					}
					if end, ascii := plainEnd([]byte("\x00"+text), 1); end != n+1 || ascii != wantASCII {
						t.Errorf("plainEnd(%q) = %d, %v; want %d, %v", text, end, ascii, n+1, wantASCII)
					}
				}
			}
		}
	}
}
