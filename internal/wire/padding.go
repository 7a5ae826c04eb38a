package wire

import "strings"

// padTo is the step in bytes to which the sizes of padded events are rounded.
const padTo = 64

var padding = strings.Repeat("0123456789abcdef", padTo/16)

// Padding returns the text that pads an event with a text of size encoded bytes. Events with texts of up to 64 bytes then have the same
// size, those of up to 128 bytes the next size, and so on.
func Padding(size int) string { return padding[:padTo-1-(size+padTo-1)%padTo] }
