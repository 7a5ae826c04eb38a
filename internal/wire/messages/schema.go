package messages

import (
	"slices"
	"strings"

	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// strictRules are the API's rules for schemas of strict tools and of structured output.
var strictRules = wire.StrictRules{AllOf: true, Keeps: func(keyword string, value []byte) bool {
	switch keyword {
	case "minItems":
		return string(value) == "0" || string(value) == "1"
	case "format":
		return slices.Contains(formats, rawjson.Text(value))
	}
	return false
}}

// formats are the string formats that the API checks.
var formats = strings.Fields("date-time time date duration email hostname uri ipv4 ipv6 uuid")
