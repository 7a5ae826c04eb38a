package rawjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// smallObject has 300 bytes and ten keys, as arguments of a tool call have.
const smallObject = `{"path":"/srv/projects/lathe/internal/rawjson/check.go","query":"func Check","limit":25,"offset":0,` +
	`"recursive":true,"case_sensitive":false,"include":["*.go","*.md"],"exclude":null,"max_bytes":1048576,` +
	`"note":"search the whole tree, and stop after the first twenty-five matches; report file and line only"}`

func manyKeys(n int) []byte {
	var b bytes.Buffer
	b.WriteByte('{')
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"key%d":%d`, i, i)
	}
	b.WriteByte('}')
	return b.Bytes()
}

func benchInputs() []struct {
	name string
	text []byte
} {
	return []struct {
		name string
		text []byte
	}{
		{"small", []byte(smallObject)},
		{"keys10000", manyKeys(10_000)},
		{"text200KB", []byte(`{"content":"` + strings.Repeat("All work and no play. ", 200_000/22) + `"}`)},
		{"cyrillic200KB", []byte(`{"content":"` + strings.Repeat("Привет, мир. ", 200_000/22) + `"}`)},
		{"rows200KB", []byte(`[` + strings.Repeat(smallObject+",", 200_000/len(smallObject)) + `{}]`)},
	}
}

func bench(b *testing.B, fn func(text []byte)) {
	for _, in := range benchInputs() {
		b.Run(in.name, func(b *testing.B) {
			b.SetBytes(int64(len(in.text)))
			b.ReportAllocs()
			for b.Loop() {
				fn(in.text)
			}
		})
	}
}

func BenchmarkCheck(b *testing.B) {
	bench(b, func(text []byte) {
		if err := Check(text, Limits{}); err != nil {
			b.Fatal(err)
		}
	})
}

func BenchmarkScan(b *testing.B) {
	bench(b, func(text []byte) {
		if _, err := Scan(text, 0); err != nil {
			b.Fatal(err)
		}
	})
}

// BenchmarkStandardValid is encoding/json's check, to compare with.
func BenchmarkStandardValid(b *testing.B) {
	bench(b, func(text []byte) {
		if !json.Valid(text) {
			b.Fatal("not valid")
		}
	})
}

func BenchmarkCanonical(b *testing.B) {
	var dst []byte
	bench(b, func(text []byte) {
		var err error
		if dst, err = AppendCanonical(dst[:0], text); err != nil {
			b.Fatal(err)
		}
	})
}

func BenchmarkCompact(b *testing.B) {
	var dst []byte
	bench(b, func(text []byte) { dst = AppendCompact(dst[:0], text) })
}

func BenchmarkQuote(b *testing.B) {
	for _, in := range []struct{ name, text string }{
		{"word", "get_weather"},
		{"ascii4KB", strings.Repeat("All work and no play. ", 4096/22)},
		{"code4KB", strings.Repeat("\tif err != nil {\n\t\treturn \"x\"\n\t}\n", 4096/35)},
		{"cyrillic4KB", strings.Repeat("Привет, мир. ", 4096/22)},
	} {
		b.Run(in.name, func(b *testing.B) {
			var dst []byte
			b.SetBytes(int64(len(in.text)))
			b.ReportAllocs()
			for b.Loop() {
				dst = AppendQuote(dst[:0], in.text)
			}
		})
	}
}

func BenchmarkUnquote(b *testing.B) {
	for _, in := range []struct{ name, text string }{
		{"word", "get_weather"},
		{"ascii4KB", strings.Repeat("All work and no play. ", 4096/22)},
		{"code4KB", strings.Repeat("\tif err != nil {\n\t\treturn \"x\"\n\t}\n", 4096/35)},
		{"cyrillic4KB", strings.Repeat("Привет, мир. ", 4096/22)},
	} {
		quoted := AppendQuote(nil, in.text)
		b.Run(in.name, func(b *testing.B) {
			var dst []byte
			var err error
			b.SetBytes(int64(len(quoted)))
			b.ReportAllocs()
			for b.Loop() {
				if dst, err = AppendUnquote(dst[:0], quoted); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
