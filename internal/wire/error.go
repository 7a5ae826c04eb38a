package wire

import (
	"cmp"
	"strconv"
)

// Error returns type, status, code and parameter of the error. It omits the message, which may quote the request.
func (e *APIError) Error() string {
	text := cmp.Or(e.Type, "error")
	if e.Status != 0 {
		text += " (HTTP " + strconv.Itoa(e.Status) + ")"
	}
	if e.Code != "" {
		text += " code " + e.Code
	}
	if e.Param != "" {
		text += " at " + e.Param
	}
	return text
}
