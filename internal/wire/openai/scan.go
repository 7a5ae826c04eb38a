package openai

import (
	"encoding/binary"
	"math/bits"

	"github.com/lathe-run/lathe/internal/rawjson"
)

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// stringEnd returns the index of the quote that closes the string whose text begins at b[i], and
// whether the text has no escapes; -1 where no valid string closes. Bytes from 0x80 up are not
// looked at: a server may cut a character in two.
//
// It looks at eight bytes at a time; of the mask, the lowest bit is right.
func stringEnd(b []byte, i int) (end int, plain bool) {
	plain = true
	for {
		for i+8 <= len(b) {
			x := binary.LittleEndian.Uint64(b[i:])
			quote, slash := x^(ones*'"'), x^(ones*'\\')
			stop := ((x-ones*' ')&^x | (quote-ones)&^quote | (slash-ones)&^slash) & highs
			if stop != 0 {
				i += bits.TrailingZeros64(stop) >> 3
				goto special
			}
			i += 8
		}
		for i < len(b) && b[i] != '"' && b[i] != '\\' && b[i] >= ' ' {
			i++
		}
		if i >= len(b) {
			return -1, false
		}
	special:
		switch b[i] {
		case '"':
			return i, plain
		case '\\':
			n := escapeLen(b[i:])
			if n == 0 {
				return -1, false
			}
			i += n
			plain = false
		default:
			return -1, false
		}
	}
}

// escapeLen returns the length of the escape at the start of b, 0 where it is none.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(b) >= 6 && hex4(b[2:6]) >= 0 {
			return 6
		}
	}
	return 0
}

// hex4 returns the value of four hexadecimal digits, or -1.
func hex4(b []byte) rune {
	var r rune
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

func skipSpace(b []byte, i int) int {
	if i < len(b) && b[i] > ' ' {
		return i
	}
	return rawjson.SkipSpace(b, i)
}

// valueEnd returns the end of the value that starts at b[i], or -1.
func valueEnd(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch c := b[i]; c {
	case '"':
		end, _ := stringEnd(b, i+1)
		if end < 0 {
			return -1
		}
		return end + 1
	case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		j := i + 1
		for j < len(b) && b[j] >= '0' && b[j] <= '9' {
			j++
		}
		if (c != '0' || j == i+1) && j < len(b) && b[j] != '.' && b[j]|0x20 != 'e' {
			return j
		}
	case 'n':
		if i+4 <= len(b) && string(b[i:i+4]) == "null" {
			return i + 4
		}
		return -1
	case '{', '[':
		if i+1 < len(b) && b[i+1] == c+2 { // ] and } are two above their partners
			return i + 2
		}
	}
	end, err := rawjson.Scan(b, i)
	if err != nil {
		return -1
	}
	return end
}
